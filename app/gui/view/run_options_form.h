#pragma once

#include <string>
#include <vector>

#include "app/gui/drawing/theme.h"
#include "app/gui/session/engine_session.h"
#include "engine/options/run_options.h"

namespace kvscope::gui {

/// The options that are seldom changed, a row each: its name, marked where it differs from the default of `kvscope
/// run`, the field, a way back, and beneath it what is wrong.
/// @param devices of this machine, none until they were looked for: then what chooses among them is not shown
/// @param no_card why it has only the processor; stands below that choice
void edit_run_options(engine::RunOptions& options, const std::vector<engine::DeviceChoice>& devices,
                      const std::string& no_card, const Theme& theme);

/// What is wrong with a field, under it; nothing where nothing is.
void draw_problem(const std::string& problem, const Theme& theme);

}  // namespace kvscope::gui
