#pragma once

#include "app/gui/drawing/theme.h"
#include "app/gui/session/session.h"

namespace kvscope::gui {

class EngineSession;

/// The line at the window's lower edge: what runs, the trace's model and prompt, what became of the marked text, frames
/// a second. @param engine nullptr in a build without the engine
void draw_status_bar(Session& session, EngineSession* engine, const Theme& theme);

}  // namespace kvscope::gui
