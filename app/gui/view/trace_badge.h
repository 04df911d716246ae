#pragma once

#include <string>

#include "app/gui/session/trace_names.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// In the state of the view Trace: the id of the document that it shows.
inline constexpr const char* shown_document = "document";

/// A button with the badge of an open trace; its name is the tooltip. A click opens a menu: close, hide, show only this
/// trace, show the file.
void draw_trace_badge(const Context& context, const Document& document);

/// The badge and, in bold, as much of the trace's name as the line has room for. @param after what follows the name
void draw_trace_title(const Context& context, const Document& document, const std::string& after = "");

}  // namespace kvscope::gui
