#pragma once

#include <string>

#include "app/gui/session/trace_names.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// In the state of the view Trace: the id of the document that it shows.
inline constexpr const char* shown_document = "document";

/// A button with the badge of an open trace; its name is the tooltip. A click, or a right click, opens a menu: close,
/// hide, show only this trace, show the file.
void draw_trace_badge(const Context& context, const Document& document);

/// Puts that button over each badge_in_text() of a text that was drawn with the current font. An item below the text
/// needs ImGui::SetNextItemAllowOverlap(). The last item stays the one that was drawn before.
/// @param at the text's upper left corner @param font_size 0: the current one
void draw_badges_in(const Context& context, const std::string& text, ImVec2 at, float font_size = 0);

/// The badge and, in bold, as much of the trace's name as the line has room for. @param after what follows the name
void draw_trace_title(const Context& context, const Document& document, const std::string& after = "");

/// A run's label (label_that_fits) with its trace's badge, bold where the run is selected. A click selects the run.
void draw_run_title(const Context& context, const RunKey& run, float width);

}  // namespace kvscope::gui
