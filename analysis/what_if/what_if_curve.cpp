#include "analysis/what_if/what_if_curve.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <set>
#include <stdexcept>

#include "common/stopped.h"
#include "policies/api/policy_errors.h"

namespace kvscope::analysis {
namespace {

constexpr int n_budgets = 24;
constexpr int n_values = 17;

const policies::Parameter* number_parameter(const policies::Definition& definition, const std::string& name) {
    for (const policies::Parameter& parameter : definition.parameters) {
        const bool is_number =
            parameter.kind == policies::ParameterKind::integer || parameter.kind == policies::ParameterKind::real;
        if (is_number && parameter.name == name) return &parameter;
    }
    return nullptr;
}

std::set<double> budgets_to_try(const CurveSource& source) {
    const int64_t most = std::max<int64_t>(source.n_tokens, 1);
    const int64_t least = smallest_budget_to_try(source.spec, source.budget, source.n_tokens);
    std::set<double> budgets;
    for (int i = 0; i < n_budgets; ++i) {
        const double at = static_cast<double>(i) / (n_budgets - 1);
        const double budget =
            static_cast<double>(least) * std::pow(static_cast<double>(most) / static_cast<double>(least), at);
        budgets.insert(std::round(budget));
    }
    return budgets;
}

std::set<double> values_of(const policies::Parameter& parameter, const CurveSource& source) {
    const bool is_whole = parameter.kind == policies::ParameterKind::integer;
    const double unknown = is_whole ? static_cast<double>(source.budget) : 1;
    const double recorded = policies::numeric_value(source.spec.values.value(parameter.name)).value_or(unknown);
    const double low = std::isfinite(parameter.range.low) ? parameter.range.low : std::min(0.0, 4 * recorded);
    double high = std::isfinite(parameter.range.high) ? parameter.range.high : std::max(4 * std::abs(recorded), 1.0);
    if (is_whole) high = std::min(high, static_cast<double>(source.n_tokens));  // integer parameters count tokens
    std::set<double> values;
    for (int i = 0; i < n_values; ++i) {
        const double value = low + (high - low) * i / (n_values - 1);
        values.insert(is_whole ? std::round(value) : value);
    }
    std::erase_if(values, [&](double value) { return !parameter.range.contains(value); });
    return values;
}

CurvePoint point_at(const trace::Reader& reader, int prompt, const CurveSource& source, const std::string& over,
                    double x, const SelectAgain& select, const std::optional<AnswerAttention>& attention) {
    throw_if_stopped(reader.stop_token());
    policies::ParameterValues values = source.spec.values;
    int64_t budget = source.budget;
    if (over == over_budget)
        budget = static_cast<int64_t>(x);
    else
        values.set_number(over, x);
    const trace::RunRecord record = select(values, budget);
    return {x, summarize_kept_entries(reader, prompt, record),
            attention ? attention->recall(record, budget) : std::numeric_limits<double>::quiet_NaN()};
}

}  // namespace

double measured_value(const CurvePoint& point, CurveMeasure measure) {
    switch (measure) {
        case CurveMeasure::coverage:
            return point.kept.coverage;
        case CurveMeasure::attention:
            return point.kept.attention_kept;
        case CurveMeasure::recall:
            return point.recall;
        case CurveMeasure::bytes:
            return static_cast<double>(point.kept.bytes);
    }
    return std::numeric_limits<double>::quiet_NaN();
}

int64_t smallest_budget_to_try(const policies::PolicySpec& spec, int64_t recorded_budget, int64_t n_tokens) {
    int64_t least = spec.values.has("window") ? spec.values.integer("window") + 1 : 1;
    // No policy compresses to a twentieth of the bytes; each rejects budgets that are too small for it.
    if (spec.definition->budget_of == policies::BudgetOf::bytes) least = n_tokens / 20;
    return std::clamp<int64_t>(std::min(least, recorded_budget), 1, std::max<int64_t>(n_tokens, 1));
}

bool can_be_curve_axis(const policies::Definition& definition, const std::string& over) {
    return over == over_budget || number_parameter(definition, over);
}

std::vector<double> values_to_try(const CurveSource& source, const std::string& over) {
    if (!can_be_curve_axis(*source.spec.definition, over))
        throw std::out_of_range(source.spec.definition->name + " has no numeric parameter '" + over + "'");
    std::set<double> values = over == over_budget ? budgets_to_try(source)
                                                  : values_of(*number_parameter(*source.spec.definition, over), source);
    values.insert(source.recorded.begin(), source.recorded.end());
    return {values.begin(), values.end()};
}

std::vector<CurvePoint> what_if_curve(const trace::Reader& reader, int prompt, const CurveSource& source,
                                      const std::string& over, const SelectAgain& select,
                                      const std::optional<AnswerAttention>& attention) {
    std::vector<CurvePoint> curve;
    std::exception_ptr refused;
    for (const double x : values_to_try(source, over)) {
        try {
            curve.push_back(point_at(reader, prompt, source, over, x, select, attention));
        } catch (const std::invalid_argument&) {  // the policy rejects this budget or value
            if (!refused) refused = std::current_exception();
        }
    }
    if (curve.empty() && refused) std::rethrow_exception(refused);
    return curve;
}

std::optional<int64_t> smallest_budget_reaching_share(const trace::Reader& reader, int prompt,
                                                      const CurveSource& source, const std::vector<CurvePoint>& curve,
                                                      CurveMeasure measure, double share, const SelectAgain& select,
                                                      const std::optional<AnswerAttention>& attention) {
    if (measure == CurveMeasure::bytes) return std::nullopt;
    const auto reaches = [&](const CurvePoint& point) { return measured_value(point, measure) >= share; };
    const auto found = std::find_if(curve.begin(), curve.end(), reaches);
    if (found == curve.end()) return std::nullopt;
    const auto is_there = [&](int64_t budget) {
        try {
            return reaches(
                point_at(reader, prompt, source, over_budget, static_cast<double>(budget), select, attention));
        } catch (const std::invalid_argument&) {  // the policy rejects this budget
            return false;
        }
    };
    auto high = static_cast<int64_t>(found->x);
    // At budget `low`, the measure is below `share`. Budgets below the first point were not tried or are not feasible.
    auto low = found == curve.begin() ? int64_t{0} : static_cast<int64_t>(std::prev(found)->x);
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        (is_there(middle) ? high : low) = middle;
    }
    return high;
}

}  // namespace kvscope::analysis
