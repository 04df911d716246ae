#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analysis/figure_definition.h"
#include "app/gui/figure/figure_source.h"

namespace kvscope::gui {

/// A choice among the sources that a figure's definition lists, in line with what stands before. Its label is
/// "##source <view>". @returns whether it changed
bool choose_source(const char* view, const analysis::FigureDefinition& definition, std::string& source);

/// A choice between the trace in focus, all that are open and A − B; nothing where there is one trace and no pair. Its
/// label is "##traces <view>". @returns whether it is there
bool choose_traces(const char* view, const Session& session, Traces& traces);

/// The choice in a view's state.
void save_traces(nlohmann::json& state, Traces traces);
void load_traces(const nlohmann::json& state, Traces& traces);

/// Why there is no A − B; empty where there is. @param of_runs whether what is shown is a run's own, and not its
/// prompt's
std::string why_no_difference(const Session& session, bool of_runs);

/// "kv-heads" as a person reads it: "KV heads".
std::string source_title(const std::string& source);

}  // namespace kvscope::gui
