#pragma once

#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Returns a run's label shortened to `width` pixels. With several open traces, the label starts with the trace's badge
/// and name: "[1] demo.h5: snapkv 64", or shorter "[1] demo: snapkv 64", "[1] snapkv 64", or shorten_run_label().
[[nodiscard]] std::string label_that_fits(const RunLook& look, float width);

/// Shortens a run's label to `width` pixels without changing its budget, e.g. "aperturek…ng=max @ 64".
[[nodiscard]] std::string shorten_run_label(const std::string& label, float width);

/// Shortens a text to `width` pixels by removing its middle.
[[nodiscard]] std::string text_that_fits(const std::string& text, float width);

/// Returns the text for a tooltip: the full label and, if the user has changed it, the original label.
[[nodiscard]] std::string full_label_for_tooltip(const RunLook& look);

}  // namespace kvscope::gui
