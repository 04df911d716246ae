#pragma once

#include <string>

#include "app/gui/session/session.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Key in the state of the view Trace; its value is the id of the shown document.
inline constexpr const char* shown_document = "document";

/// Draws a trace's badge as a button with the trace's name as its tooltip. A click opens the trace's menu.
void draw_trace_badge(const Context& context, const Document& document);

/// Draws a button over each badge_in_brackets() of a text that was already drawn. An item below a button needs
/// ImGui::SetNextItemAllowOverlap().
/// @param at the text's upper left corner @param font_size 0 for the current size
void draw_badges_over_text(const Context& context, const std::string& text, ImVec2 at, float font_size = 0);

/// Draws a line with the badge, the trace's name in bold (shortened if necessary), and the text `after`.
void draw_trace_title(const Context& context, const Document& document, const std::string& after = "");

/// Draws a run's label (label_that_fits) with its badge, bold if the run is selected. A click selects the run.
void draw_run_title(const Context& context, const RunKey& run, float width);

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
