#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analysis/drawing/figure_definition.h"
#include "app/gui/figure/figure_job.h"
#include "app/gui/view/view.h"
#include "app/gui/view_data/answer_comparison.h"
#include "app/gui/view_data/comparison.h"

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

/// Draws the combo "##compare <view>" if a pair or a second trace exists. @returns whether it was drawn
[[nodiscard]] bool draw_comparison_choice(const char* view, const Context& context, AutomaticComparison automatic,
                                          Comparison& comparison);

/// Draws the combo "##answers against" for the reference run of answers, and finds the chosen run in the session.
void draw_reference_choice(const Session& session, AnswerReference& reference);

/// Draws the choice of A and B on one line, as the view Runs does: "##<view> A", "swap##<view>", "##<view> B".
void draw_pair_choice(const Context& context, const char* view);

}  // namespace kvscope::gui
