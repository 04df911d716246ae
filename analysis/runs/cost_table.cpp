#include "analysis/runs/cost_table.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "analysis/measures/bytes_share.h"
#include "analysis/measures/logit_divergence.h"
#include "analysis/measures/result_row.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"

namespace kvscope::analysis {
namespace {

using trace::Place;
namespace schema = trace::schema;

/// Returns nullopt if the divergence was not recorded or its data sets differ in length (reported by trace::check).
std::optional<LogitDivergence> divergence_of(const trace::Reader& reader, const Place& place) {
    if (!reader.has(place, schema::run::step_kl) || !reader.has(place, schema::run::step_agreement)) return {};
    const auto kl = reader.read<float>(place, schema::run::step_kl);
    const auto agreement = reader.read<uint8_t>(place, schema::run::step_agreement);
    if (kl.size() != agreement.size()) return {};
    return logit_divergence(kl, agreement);
}

Cell predicted_bytes(const trace::Reader& reader, const Place& place) {
    if (!reader.has(place, schema::run::cache_bytes_predicted)) return {};
    const auto values = reader.read<uint64_t>(place, schema::run::cache_bytes_predicted);
    return static_cast<int64_t>(std::accumulate(values.begin(), values.end(), uint64_t{0}));
}

Cell cell_of_bytes(double bytes) { return std::isnan(bytes) ? Cell() : Cell(static_cast<int64_t>(bytes)); }

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

Row row_of(const trace::Reader& reader, int prompt, int run, const trace::ResultRow& measured) {
    const trace::RunAttributes& attributes = reader.run(prompt, run);
    const Place place = Place::of_run(prompt, run);
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
    row.cells.insert(row.cells.end(), {measured.kept_share, 1 - measured.kept_share, measured.coverage});
    if (const auto d = divergence_of(reader, place)) {
        row.cells.insert(row.cells.end(), {d->kl_mean, d->kl_stderr, static_cast<int64_t>(d->n_steps), d->agreement});
    } else {
        row.cells.insert(row.cells.end(), 4, Cell());
    }
    row.cells.push_back(known_cell(measured.attention_kept));
    row.cells.push_back(known_cell(measured.recall));
    row.cells.push_back(known_cell(measured.output_error));
    row.cells.push_back(cell_of_bytes(measured.bytes));
    row.cells.push_back(predicted_bytes(reader, place));
    const double bytes_share = share_of_full_bytes(reader, prompt, run);
    row.cells.push_back(known_cell(bytes_share));
    row.cells.push_back(bytes_share > 0 ? Cell(1 / bytes_share) : Cell());
    row.control = row.control || bytes_share > 1;
    row.cells.emplace_back(attributes.select_s);
    row.cells.push_back(known_cell(measured.first_token_s));
    row.cells.push_back(known_cell(measured.tokens_per_s));
    row.cells.push_back(cell_of_bytes(measured.peak_bytes));
    row.cells.emplace_back(attributes.status);
    row.cells.emplace_back(attributes.message.empty() ? merging_note(reader, place) : attributes.message);
    return row;
}

}  // namespace

Table cost_table(const trace::Reader& reader, int prompt) {
    check_prompt(reader, prompt);
    Table table;
    table.name = "cost";
    table.title = "Kept entries, cost and divergence from the full run, by run";
    table.columns = columns();
    const std::vector<trace::ResultRow> rows = result_rows_of_prompt(reader, prompt);
    for (int run = 0; run < reader.n_runs(prompt); ++run)
        table.rows.push_back(row_of(reader, prompt, run, rows[static_cast<size_t>(run)]));
    return table;
}

}  // namespace kvscope::analysis
