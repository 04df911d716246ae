#pragma once

#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// A run's label in `width` pixels of the current font. Where several traces are open, the trace's badge comes first:
/// "[1] demo.h5: snapkv 64", else "[1] demo: snapkv 64", else "[1] snapkv 64". Where that is too wide, the run alone,
/// and at last shortened as in run_that_fits. The whole label belongs into a tooltip.
std::string label_that_fits(const RunLook& look, float width);

/// A run's own label without the middle of what stands before its budget, "aperturek…ng=max @ 64", where it is wider
/// than `width` pixels of the current font.
std::string run_that_fits(const std::string& label, float width);

/// The text without its middle, where it is wider than `width` pixels of the current font.
std::string text_that_fits(const std::string& text, float width);

/// For a tooltip: the whole label, and below it the trace's own where a person has given the run another.
std::string label_in_full(const RunLook& look);

}  // namespace kvscope::gui
