#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analysis/drawing/figure_definition.h"
#include "app/gui/figure/figure_job.h"

namespace kvscope::gui {

/// Draws the combo "##source <view>" for the figure's sources. @returns whether the choice changed
bool draw_source_choice(const char* view, const analysis::FigureDefinition& definition, std::string& source);

/// Draws the combo "##traces <view>" if there are several choices. @returns whether it was drawn
bool draw_traces_choice(const char* view, const Session& session, Traces& traces);

void save_traces_choice(nlohmann::json& state, Traces traces);
void load_traces_choice(const nlohmann::json& state, Traces& traces);

/// Returns why A − B cannot be shown, or an empty text. @param of_runs whether the figure depends on the run
[[nodiscard]] std::string why_no_difference(const Session& session, bool of_runs);

/// Returns the label of a source, such as "attention, KV heads" for "kv-heads".
[[nodiscard]] std::string source_option_label(const std::string& source);

}  // namespace kvscope::gui
