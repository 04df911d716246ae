#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/what_if/kept_summary.h"
#include "policies/interface/registry.h"
#include "trace/reader.h"

/// What a method keeps over its budget, or over one of its parameters: the selection is made again at each.
namespace kvscope::analysis {

/// The axis of a curve that is no parameter.
constexpr const char* over_budget = "budget";

/// A run whose budget or one parameter is changed.
struct CurveSource {
    policies::PolicySpec spec;
    int64_t budget = 0;
    int64_t n_tokens = 0;          ///< N: what policies see of the prompt
    std::vector<double> recorded;  ///< budgets or values at which the trace has runs: points of the curve, too
};

struct CurvePoint {
    double x = 0;  ///< entries per KV head, or the parameter's value
    KeptSummary kept;
    double recall = 0;  ///< NaN where the trace does not tell
};

enum class CurveMeasure { coverage, attention, recall, bytes };

/// A share, but of bytes; NaN where it is not known.
double measured(const CurvePoint& point, CurveMeasure measure);

/// A run's selection with these parameters at this budget. @throws as WhatIf does
using SelectAgain = std::function<trace::RunRecord(const policies::ParameterValues&, int64_t budget)>;

/// The least budget that makes sense to try: one entry beside the policy's window; of a budget of bytes a twentieth.
int64_t least_budget(const policies::PolicySpec& spec, int64_t recorded_budget, int64_t n_tokens);

/// Whether the policy has a parameter of that name that is a number, or it is over_budget.
bool can_be_over(const policies::Definition& definition, const std::string& over);

/// What is tried: of the budget evenly spaced on a logarithmic scale up to N; of a parameter over its range, or up to
/// four times its value where the range has no end. Ascending, each once, with what is recorded.
/// @throws std::out_of_range where can_be_over is false
std::vector<double> values_to_try(const CurveSource& source, const std::string& over);

/// Values that the policy does not take are left out. Looks for an interruption (trace/interruption.h) between points.
/// @param attention nullopt: recall stays unknown
/// @throws what `select` throws where no value at all is taken
std::vector<CurvePoint> what_if_curve(const trace::Reader& reader, int prompt, const CurveSource& source,
                                      const std::string& over, const SelectAgain& select,
                                      const std::optional<AnswerAttention>& attention);

/// The smallest budget that the policy takes and at which the measure is at least `share`. It is searched by halves
/// between the first point of the curve that reaches the share and the point before, or 0: exact where the measure
/// grows with the budget. nullopt where no point reaches the share, and of bytes.
std::optional<int64_t> smallest_budget(const trace::Reader& reader, int prompt, const CurveSource& source,
                                       const std::vector<CurvePoint>& curve, CurveMeasure measure, double share,
                                       const SelectAgain& select, const std::optional<AnswerAttention>& attention);

}  // namespace kvscope::analysis
