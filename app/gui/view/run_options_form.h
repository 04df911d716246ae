#pragma once

#include <string>
#include <vector>

#include "app/gui/drawing/theme.h"
#include "app/gui/session/engine_session.h"
#include "engine/options/run_options.h"

namespace kvscope::gui {

/// Draws the less common run options, one per row, with name, field, reset button and error.
/// @param of_task whether only options that apply to tasks are drawn
/// @param devices if empty, the device options are hidden @param why_only_cpu reason why there is no GPU
void edit_run_options(engine::RunOptions& options, bool of_task, const std::vector<engine::DeviceChoice>& devices,
                      const std::string& why_only_cpu, const Theme& theme);

void draw_problem(const std::string& problem, const Theme& theme);

}  // namespace kvscope::gui
