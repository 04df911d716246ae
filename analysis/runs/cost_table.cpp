#include "analysis/runs/cost_table.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "analysis/measures/bytes_share.h"
#include "analysis/measures/logit_divergence.h"
#include "analysis/measures/recall.h"
#include "analysis/measures/token_coverage.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"

namespace kvscope::analysis {
namespace {

using trace::Place;
namespace schema = trace::schema;

struct Source {
    const trace::Reader& reader;
    int prompt;
    int run;

    Place place() const { return Place::of_run(prompt, run); }

    Cell mean(const schema::DataSet& data_set) const {
        if (!reader.has(place(), data_set)) return {};
        const auto values = reader.read<float>(place(), data_set);
        double sum = 0;
        size_t n = 0;
        for (const float value : values) {
            if (std::isnan(value)) continue;
            sum += static_cast<double>(value);
            ++n;
        }
        if (n == 0) return {};
        return sum / static_cast<double>(n);
    }

    /// Returns nullopt if the divergence was not recorded or its data sets differ in length (reported by trace::check).
    std::optional<LogitDivergence> divergence() const {
        if (!reader.has(place(), schema::run::step_kl) || !reader.has(place(), schema::run::step_agreement)) return {};
        const auto kl = reader.read<float>(place(), schema::run::step_kl);
        const auto agreement = reader.read<uint8_t>(place(), schema::run::step_agreement);
        if (kl.size() != agreement.size()) return {};
        return logit_divergence(kl, agreement);
    }

    Cell total(const schema::DataSet& data_set) const {
        if (!reader.has(place(), data_set)) return {};
        const auto values = reader.read<uint64_t>(place(), data_set);
        return static_cast<int64_t>(std::accumulate(values.begin(), values.end(), uint64_t{0}));
    }
};

Cell optional_real(const std::optional<double>& value) { return value ? Cell(*value) : Cell(); }

std::vector<Column> columns() {
    return {{"run", "Run", "", ColumnType::integer},
            {"label", "Label", "", ColumnType::text},
            {"policy", "Policy", "", ColumnType::text},
            budget_column(),
            {"kept_share", "Kept", "", ColumnType::real, 3},
            {"removed_share", "Removed", "", ColumnType::real, 3},
            {"coverage", "Coverage", "", ColumnType::real, 3, Best::highest},
            {"kl_mean", "KL", "nats", ColumnType::real, 4, Best::lowest},
            {"kl_stderr_over_steps", "KL s.e. over steps", "nats", ColumnType::real, 4},
            {"kl_steps", "KL steps", "", ColumnType::integer},
            {"agreement", "Agreement", "", ColumnType::real, 3, Best::highest},
            {"attention_kept", "Attn kept", "", ColumnType::real, 3, Best::highest},
            {"recall", "Recall", "", ColumnType::real, 3, Best::highest},
            {"output_error", "Output err", "", ColumnType::real, 3, Best::lowest},
            {"cache_bytes", "Cache", "B", ColumnType::integer, 0, Best::lowest},
            {"cache_bytes_predicted", "Predicted", "B", ColumnType::integer},
            {"bytes_share", "Of full", "", ColumnType::real, 3, Best::lowest},
            {"compression", "Compression", "×", ColumnType::real, 1, Best::highest},
            {"select_s", "Select", "s", ColumnType::real, 3, Best::none},
            {"first_token_s", "First token", "s", ColumnType::real, 3, Best::lowest},
            {"decode_tokens_per_s", "Decode", "tokens/s", ColumnType::real, 1, Best::highest},
            {"peak_bytes", "Peak", "B", ColumnType::integer, 0, Best::lowest},
            {"status", "Status", "", ColumnType::text},
            {"message", "Message", "", ColumnType::text}};
}

std::string merging_note(const trace::Reader& reader, const trace::Place& place) {
    if (!reader.has(place, schema::run::merged_keys) || !reader.has(place, schema::run::merged_keys_outside)) return {};
    const auto sum = [&](const schema::DataSet& set) {
        const auto by_layer = reader.read<std::uint64_t>(place, set);
        return std::accumulate(by_layer.begin(), by_layer.end(), std::uint64_t{0});
    };
    const std::uint64_t outside = sum(schema::run::merged_keys_outside);
    if (outside == 0) return {};
    return fmt::format("{} of {} merged keys have weights outside [0, 1]", outside, sum(schema::run::merged_keys));
}

Row row_of(const trace::Reader& reader, int prompt, int run, Cell recall) {
    const trace::RunAttributes& attributes = reader.run(prompt, run);
    const Source source{reader, prompt, run};
    Row row;
    row.control = attributes.is_full();
    row.group = fmt::format("{} {}", has_budget_of_bytes(attributes) ? "bytes" : "entries", attributes.budget);
    if (has_budget_of_bytes(attributes)) row.group += fmt::format(" {}", attributes.budget_fraction);
    row.cells = {int64_t{run}, run_label(attributes), attributes.policy, budget_cell(attributes)};
    if (attributes.status != schema::run::status_complete) {
        row.cells.resize(columns().size());
        row.cells[row.cells.size() - 2] = attributes.status;
        row.cells.back() = attributes.message;
        return row;
    }
    const auto kept = reader.kept(prompt, run);
    const KeptSets sets = kept_sets(*kept, static_cast<size_t>(reader.prompt(prompt).visible_tokens()));
    const auto slots = static_cast<double>(sets.n_layers * sets.n_rows * sets.n_tokens);
    const double kept_share = slots > 0 ? static_cast<double>(kept->indices.size()) / slots : 0.0;
    row.cells.insert(row.cells.end(), {kept_share, 1 - kept_share, model_coverage(sets).share});
    if (const auto d = source.divergence()) {
        row.cells.insert(row.cells.end(), {d->kl_mean, d->kl_stderr, static_cast<int64_t>(d->n_steps), d->agreement});
    } else {
        row.cells.insert(row.cells.end(), 4, Cell());
    }
    row.cells.push_back(can_measure_kept_tokens(attributes, sets) ? source.mean(schema::run::attention_kept) : Cell());
    row.cells.push_back(std::move(recall));
    row.cells.push_back(source.mean(schema::run::output_error));
    row.cells.push_back(source.total(schema::run::cache_bytes));
    row.cells.push_back(source.total(schema::run::cache_bytes_predicted));
    const double bytes_share = share_of_full_bytes(reader, prompt, run);
    row.cells.push_back(known_cell(bytes_share));
    row.cells.push_back(bytes_share > 0 ? Cell(1 / bytes_share) : Cell());
    row.control = row.control || bytes_share > 1;
    row.cells.emplace_back(attributes.select_s);
    row.cells.push_back(optional_real(attributes.first_token_s));
    row.cells.push_back(optional_real(attributes.decode_tokens_per_s));
    row.cells.push_back(attributes.peak_bytes ? Cell(static_cast<int64_t>(*attributes.peak_bytes)) : Cell());
    row.cells.emplace_back(attributes.status);
    row.cells.emplace_back(attributes.message.empty() ? merging_note(reader, trace::Place::of_run(prompt, run))
                                                      : attributes.message);
    return row;
}

std::vector<Cell> recalls(const trace::Reader& reader, int prompt) {
    std::vector<Cell> cells(static_cast<size_t>(reader.n_runs(prompt)));
    if (!full_run_with_answer_attention(reader, prompt)) return cells;
    const auto n_tokens = static_cast<size_t>(reader.prompt(prompt).visible_tokens());
    std::vector<int> measured;
    for (int run = 0; run < reader.n_runs(prompt); ++run) {
        const trace::RunAttributes& attributes = reader.run(prompt, run);
        if (attributes.status == schema::run::status_complete &&
            can_measure_kept_tokens(attributes, kept_sets(*reader.kept(prompt, run), n_tokens)))
            measured.push_back(run);
    }
    const std::vector<Recall> of_measured = recall_of_runs(reader, prompt, measured);
    for (size_t i = 0; i < measured.size(); ++i) cells[static_cast<size_t>(measured[i])] = of_measured[i].model;
    return cells;
}

}  // namespace

Table cost_table(const trace::Reader& reader, int prompt) {
    check_prompt(reader, prompt);
    Table table;
    table.name = "cost";
    table.title = "Kept entries, cost and divergence from the full run, by run";
    table.columns = columns();
    std::vector<Cell> recall = recalls(reader, prompt);
    for (int run = 0; run < reader.n_runs(prompt); ++run) {
        table.rows.push_back(row_of(reader, prompt, run, std::move(recall[static_cast<size_t>(run)])));
    }
    return table;
}

}  // namespace kvscope::analysis
