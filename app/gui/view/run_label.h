#pragma once

#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// "a long n…me: snapkv 64": a run's label with the trace's name shortened until it fits into `width` pixels of the
/// current font: without its extension, then without its file where the folder tells it from another of that name, then
/// in the middle; where that does not do, the run alone, as run_that_fits has it. The whole label belongs into a
/// tooltip.
std::string label_that_fits(const RunLook& look, float width);

/// A run's own label without the middle of what stands before its budget, "aperturek…ng=max @ 64", where it is wider
/// than `width` pixels of the current font.
std::string run_that_fits(const std::string& label, float width);

/// For a tooltip: the whole label, and below it the trace's own where a person has given the run another.
std::string label_in_full(const RunLook& look);

}  // namespace kvscope::gui
