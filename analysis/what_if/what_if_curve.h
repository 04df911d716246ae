#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/what_if/kept_summary.h"
#include "policies/registry/registry.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// Value of `over` for a curve over budgets, not over a parameter.
inline constexpr const char* over_budget = "budget";

/// A run whose budget or one parameter is varied.
struct CurveSource {
    policies::PolicySpec spec;
    int64_t budget = 0;
    int64_t n_tokens = 0;          ///< N: prompt tokens that policies see
    std::vector<double> recorded;  ///< budgets or values of recorded runs, which the curve includes
};

struct CurvePoint {
    double x = 0;  ///< entries per KV head, or value of the parameter
    KeptSummary kept;
    double recall = 0;  ///< NaN if unknown
};

enum class CurveMeasure { coverage, attention, recall, bytes };

/// Returns a share, or a number of bytes for the measure `bytes`; NaN if unknown.
[[nodiscard]] double measured_value(const CurvePoint& point, CurveMeasure measure);

/// Repeats a run's selection with these parameters at this budget. @throws as WhatIf
using SelectAgain = std::function<trace::RunRecord(const policies::ParameterValues&, int64_t budget)>;

/// Returns the smallest useful budget: one entry besides the policy's window; for a budget of bytes, N / 20.
[[nodiscard]] int64_t smallest_budget_to_try(const policies::PolicySpec& spec, int64_t recorded_budget,
                                             int64_t n_tokens);

/// Whether `over` is over_budget or the name of a numeric parameter of the policy.
[[nodiscard]] bool can_be_curve_axis(const policies::Definition& definition, const std::string& over);

/// Returns the values of the curve in ascending order, including recorded ones: budgets on a logarithmic scale up to N,
/// or the range of a parameter. @throws std::out_of_range if can_be_curve_axis() is false
[[nodiscard]] std::vector<double> values_to_try(const CurveSource& source, const std::string& over);

/// Computes the curve; omits values that the policy rejects. @throws Stopped after a stop request, which is checked
/// before each point
[[nodiscard]] std::vector<CurvePoint> what_if_curve(const trace::Reader& reader, int prompt, const CurveSource& source,
                                                    const std::string& over, const SelectAgain& select,
                                                    const std::optional<AnswerAttention>& attention);

/// Returns the smallest budget at which the measure is at least `share`, found by bisection between two points of the
/// curve. Returns nullopt if no point reaches the share or the measure is `bytes`.
[[nodiscard]] std::optional<int64_t> smallest_budget_reaching_share(
    const trace::Reader& reader, int prompt, const CurveSource& source, const std::vector<CurvePoint>& curve,
    CurveMeasure measure, double share, const SelectAgain& select, const std::optional<AnswerAttention>& attention);

}  // namespace kvscope::analysis
