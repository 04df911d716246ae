#pragma once

#include "app/gui/drawing/theme.h"
#include "app/gui/session/run_form.h"

namespace kvscope::gui {

/// The form's options that are seldom changed, a row each: its name, marked where it differs from the default of
/// `kvscope run`, the field, a way back, and beneath it what is wrong.
void edit_run_options(RunForm& form, const Theme& theme);

/// What is wrong with a field, under it; nothing where nothing is.
void draw_problem(const RunForm& form, RunField field, const Theme& theme);

}  // namespace kvscope::gui
