#pragma once

#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Returns a run's label shortened to `width` pixels. With several open traces, it starts with the trace's badge: "[1]
/// demo.h5: snapkv 64", or shorter "[1] demo: snapkv 64" or "[1] snapkv 64". If these are too wide, returns
/// run_that_fits(). Show the full label in a tooltip.
std::string label_that_fits(const RunLook& look, float width);

/// Shortens the part of a run's label before its budget to `width` pixels, e.g. "aperturek…ng=max @ 64".
std::string run_that_fits(const std::string& label, float width);

/// Removes the middle of a text that is wider than `width` pixels.
std::string text_that_fits(const std::string& text, float width);

/// Text for a tooltip: the full label and, if the user has changed it, the original label below.
std::string label_in_full(const RunLook& look);

}  // namespace kvscope::gui
