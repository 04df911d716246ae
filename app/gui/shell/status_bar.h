#pragma once

#include "app/gui/drawing/theme.h"
#include "app/gui/session/session.h"

namespace kvscope::gui {

class EngineSession;

/// Draws the status bar: the current job, the trace's model and prompt, whether the marked text is kept, and frames per
/// second.
/// @param engine nullptr in a build without the engine
void draw_status_bar(Session& session, EngineSession* engine, const Theme& theme);

}  // namespace kvscope::gui
