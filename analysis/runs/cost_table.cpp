#include "analysis/runs/cost_table.h"

#include <fmt/format.h>

#include <cmath>

#include "analysis/measures/result_row.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"

namespace kvscope::analysis {
namespace {

/// Returns an empty cell for unknown numbers and for those of damaged traces that no integer can hold.
Cell whole_cell(double value) {
    constexpr double limit = 0x1p63;
    return std::abs(value) < limit ? Cell(static_cast<int64_t>(value)) : Cell();
}

std::vector<Column> columns() {
    return {{"run", "Run", "", ColumnType::integer},
            {"label", "Label", "", ColumnType::text},
            {"policy", "Policy", "", ColumnType::text},
            budget_column(),
            {"kept_share", "Kept", "", ColumnType::real, 3},
            {"removed_share", "Removed", "", ColumnType::real, 3},
            {"coverage", "Coverage", "", ColumnType::real, 3, Best::highest},
            {"kl_mean", "KL", "nats", ColumnType::real, 4, Best::lowest},
            {"kl_stderr_over_steps", "KL std. error", "nats", ColumnType::real, 4},
            {"kl_steps", "KL steps", "", ColumnType::integer},
            {"agreement", "Agreement", "", ColumnType::real, 3, Best::highest},
            {"attention_kept", "Attn kept", "", ColumnType::real, 3, Best::highest},
            {"recall", "Recall", "", ColumnType::real, 3, Best::highest},
            {"output_error", "Output err", "", ColumnType::real, 3, Best::lowest},
            {"cache_bytes", "Cache", "B", ColumnType::integer, 0, Best::lowest},
            {.name = "cache_bytes_predicted",
             .title = "Predicted",
             .unit = "B",
             .type = ColumnType::integer,
             .repeats = "cache_bytes"},
            {"bytes_share", "Of full", "", ColumnType::real, 3, Best::lowest},
            {"compression", "Compression", "×", ColumnType::real, 1, Best::highest},
            {"select_s", "Select", "s", ColumnType::real, 3, Best::none},
            {"first_token_s", "First token", "s", ColumnType::real, 3, Best::lowest},
            {"decode_tokens_per_s", "Decode", "tokens/s", ColumnType::real, 1, Best::highest},
            {"peak_bytes", "Peak", "B", ColumnType::integer, 0, Best::lowest},
            {"status", "Status", "", ColumnType::text},
            {"message", "Message", "", ColumnType::text}};
}

std::string merging_note(const trace::ResultRow& row) {
    if (!(row.merged_keys_outside > 0)) return {};
    return fmt::format("{} of {} merged keys have weights outside [0, 1]", row.merged_keys_outside, row.merged_keys);
}

Row row_of(int number, const trace::RunAttributes& run, const trace::ResultRow& measured, double bytes_share) {
    Row row;
    row.control = run.is_full() || bytes_share > 1;
    row.group = fmt::format("{} {}", has_budget_of_bytes(run) ? "bytes" : "entries", run.budget);
    if (has_budget_of_bytes(run)) row.group += fmt::format(" {}", run.budget_fraction);
    row.cells = {int64_t{number}, run_label(run), run.policy, budget_cell(run)};
    if (run.status != trace::schema::run::status_complete) {
        row.cells.resize(columns().size());
        row.cells[row.cells.size() - 2] = run.status;
        row.cells.back() = run.message;
        return row;
    }
    row.cells.insert(row.cells.end(), {measured.kept_share,
                                       1 - measured.kept_share,
                                       known_cell(measured.coverage),
                                       known_cell(measured.kl),
                                       known_cell(measured.kl_stderr),
                                       whole_cell(measured.kl_steps),
                                       known_cell(measured.agreement),
                                       known_cell(measured.attention_kept),
                                       known_cell(measured.recall),
                                       known_cell(measured.output_error),
                                       whole_cell(measured.bytes),
                                       whole_cell(measured.bytes_predicted),
                                       known_cell(bytes_share),
                                       bytes_share > 0 ? Cell(1 / bytes_share) : Cell(),
                                       measured.select_s,
                                       known_cell(measured.first_token_s),
                                       known_cell(measured.tokens_per_s),
                                       whole_cell(measured.peak_bytes),
                                       run.status,
                                       run.message.empty() ? merging_note(measured) : run.message});
    return row;
}

}  // namespace

Table cost_table(const trace::Reader& reader, int prompt) {
    check_prompt(reader, prompt);
    Table table;
    table.name = "cost";
    table.title = "Kept entries, cost and divergence from the full run, by run";
    table.columns = columns();
    const std::vector<trace::ResultRow> rows = result_rows_of_prompt(reader, prompt, ignore_damage);
    for (size_t run = 0; run < rows.size(); ++run)
        table.rows.push_back(
            row_of(static_cast<int>(run), reader.runs(prompt)[run], rows[run], share_of_full_bytes(rows, rows[run])));
    return table;
}

}  // namespace kvscope::analysis
