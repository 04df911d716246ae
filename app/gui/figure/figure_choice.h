#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analysis/figure_definition.h"
#include "app/gui/figure/figure_source.h"

namespace kvscope::gui {

/// Draws the combo "##source <view>" for the sources of a figure's definition. @returns whether the choice changed
bool choose_source(const char* view, const analysis::FigureDefinition& definition, std::string& source);

/// Draws the combo "##traces <view>" for the shown traces, if there is a choice. @returns whether it was drawn
bool choose_traces(const char* view, const Session& session, Traces& traces);

void save_traces(nlohmann::json& state, Traces traces);
void load_traces(const nlohmann::json& state, Traces& traces);

/// Returns why A − B is not possible, or an empty text. @param of_runs whether the figure depends on the run
std::string why_no_difference(const Session& session, bool of_runs);

/// Returns the label of a figure's source: "attention, KV heads" for "kv-heads".
std::string source_title(const std::string& source);

}  // namespace kvscope::gui
