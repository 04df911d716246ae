#pragma once

#include "app/gui/drawing/theme.h"
#include "app/gui/session/session.h"

namespace kvscope::gui {

class EngineSession;

/// Draws the status bar: current job, model and prompt, marked text, and frames per second.
void draw_status_bar(Session& session, EngineSession* engine, const Theme& theme);

}  // namespace kvscope::gui
