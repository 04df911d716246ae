#include "analysis/results/scalars.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "analysis/drawing/figure_definition.h"
#include "policies/registry/name_matching.h"

namespace kvscope::analysis {
namespace {

template <double trace::ResultRow::*member>
double column_value(const Result& result) {
    return result.row.*member;
}

using trace::ResultRow;
using enum Best;
using Kind = Scalar::Kind;

constexpr std::array scalars = {
    Scalar{"score", "Score", "", 3, highest, Kind::score, column_value<&ResultRow::score>},
    Scalar{"kl", "KL", "nats", 4, lowest, Kind::distance, column_value<&ResultRow::kl>},
    Scalar{"agreement", "Agreement", "", 3, highest, Kind::share, column_value<&ResultRow::agreement>},
    Scalar{"coverage", "Coverage", "", 3, highest, Kind::share, column_value<&ResultRow::coverage>},
    Scalar{"recall", "Recall", "", 3, highest, Kind::share, column_value<&ResultRow::recall>},
    Scalar{"attention_kept", "Attention kept", "", 3, highest, Kind::share, column_value<&ResultRow::attention_kept>},
    Scalar{"evidence_kept", "Evidence kept", "", 3, highest, Kind::share, column_value<&ResultRow::evidence_kept>},
    Scalar{"evidence_gone", "Evidence gone", "", 3, lowest, Kind::share, column_value<&ResultRow::evidence_gone>},
    Scalar{"system_dropped", "Dropped share of the system prompt − of other tokens", "", 3, none, Kind::share,
           column_value<&ResultRow::system_dropped>},
    Scalar{"tied_heads", "Heads with ties at the cut-off", "", 3, none, Kind::share,
           column_value<&ResultRow::tied_heads>},
    Scalar{"output_error", "Output error", "", 3, lowest, Kind::distance, column_value<&ResultRow::output_error>},
    Scalar{"bytes", "Bytes", "", 0, lowest, Kind::amount, column_value<&ResultRow::bytes>},
    Scalar{"bytes_share", "Share of full's bytes", "", 3, lowest, Kind::share,
           [](const Result& result) { return result.share_of_bytes; }},
    Scalar{"kept_share", "Kept share", "", 3, lowest, Kind::share, column_value<&ResultRow::kept_share>},
    Scalar{"budget_share", "Budget share", "", 3, none, Kind::share,
           [](const Result& result) { return std::min(result.row.budget_fraction, 1.0); }},
    Scalar{"prefill_s", "Prefill", "s", 3, lowest, Kind::cost, column_value<&ResultRow::prefill_s>},
    Scalar{"first_token_s", "First token", "s", 3, lowest, Kind::cost, column_value<&ResultRow::first_token_s>},
    Scalar{"decode_s", "Decoding", "s", 3, lowest, Kind::cost, column_value<&ResultRow::decode_s>},
    Scalar{"step_s", "Decoding step", "s", 4, lowest, Kind::cost,
           [](const Result& result) { return static_cast<double>(result.row.batch) / result.row.tokens_per_s; }},
    Scalar{"tokens_per_s", "Tokens per second", "", 2, highest, Kind::cost, column_value<&ResultRow::tokens_per_s>},
    Scalar{"peak_bytes", "Peak bytes", "", 0, lowest, Kind::cost, column_value<&ResultRow::peak_bytes>},
};

}  // namespace

std::vector<std::string> scalar_names() {
    std::vector<std::string> names;
    for (const Scalar& scalar : scalars) names.emplace_back(scalar.name);
    return names;
}

std::vector<Scalar> cost_scalars() {
    std::vector<Scalar> costs;
    std::ranges::copy_if(scalars, std::back_inserter(costs), &Scalar::is_cost);
    return costs;
}

const Scalar* find_scalar(std::string_view name) {
    const std::string wanted = underscores_to_hyphens(name);
    const auto* const found = std::ranges::find_if(
        scalars, [&](const Scalar& scalar) { return underscores_to_hyphens(scalar.name) == wanted; });
    return found == scalars.end() ? nullptr : &*found;
}

const Scalar& scalar_named(std::string_view name) {
    if (const Scalar* found = find_scalar(name)) return *found;
    const std::vector<std::string> known = scalar_names();
    throw FigureError(fmt::format("rows of results have no number '{}'.{} There are {}", name,
                                  policies::did_you_mean(std::string(name), known), policies::joined(known)));
}

bool is_known(const Scalar& scalar, std::span<const Result> results) {
    return std::ranges::any_of(
        results, [&](const Result& result) { return result.is_complete() && std::isfinite(scalar.value(result)); });
}

void require_known(const Scalar& scalar, std::span<const Result> results) {
    if (is_known(scalar, results)) return;
    // Tasks compare answers with the expected ones, not with the full run's predictions or attention.
    const auto compared = {"kl", "agreement", "recall", "attention_kept", "output_error"};
    const bool is_of_eval = std::ranges::all_of(results, [](const Result& result) {
        return result.task != trace::schema::root::prompt_results && result.row.source.empty();
    });
    if (is_of_eval && std::ranges::find(compared, scalar.name) != compared.end())
        throw NothingToShow(fmt::format(
            "`kvscope eval` does not record {}: answer a sample again with `kvscope run --prompt-from`", scalar.name));
    throw NothingToShow(fmt::format("no complete run has a value of {}", scalar.name));
}

const Scalar& default_scalar(std::span<const Result> results) {
    for (const char* name : {"score", "kl", "first_token_s"})
        if (is_known(scalar_named(name), results)) return scalar_named(name);
    return scalar_named("kl");
}

}  // namespace kvscope::analysis
