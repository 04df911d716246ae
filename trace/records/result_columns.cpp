#include "trace/records/result_columns.h"

#include <cmath>
#include <type_traits>

#include "common/sha256.h"
#include "trace/records/storable_text.h"

namespace kvscope::trace {

ResultRow row_of_prompt(const ModelAttributes& model, const PromptAttributes& prompt) {
    ResultRow row;
    row.sample_id = prompt.name;
    row.prompt_hash = sha256_of(storable_text(prompt.text));
    row.length = prompt.n_tokens;
    row.depth = row.score = row.seconds = ResultRow::unknown;
    row.answers_json = "[]";
    row.model = model.name;
    row.dtype = model.dtype;
    row.question_seen = prompt.query_aware ? 1 : 0;
    return row;
}

void add_run_attributes(ResultRow& row, const RunAttributes& run) {
    const bool is_complete = run.status == schema::run::status_complete;
    row.policy = run.policy;
    row.parameters_json = run.parameters_json;
    row.budget = run.budget;
    row.budget_fraction = run.budget_fraction;
    row.prediction = run.output_text;
    row.status = is_complete ? run.status : run.status + ": " + run.message;
    row.device = run.device.value_or("");
    row.instructions = run.instructions.value_or("");
    row.commit = run.commit.value_or("");
    row.seed = run.seed;
    if (!is_complete) return;
    row.prefill_s = run.prefill_s;
    row.select_s = run.select_s;
    row.first_token_s = run.first_token_s.value_or(ResultRow::unknown);
    row.decode_s = run.decode_s.value_or(ResultRow::unknown);
    row.tokens_per_s = run.decode_tokens_per_s.value_or(ResultRow::unknown);
    row.tied_heads = run.tied_heads.value_or(ResultRow::unknown);
    if (run.peak_bytes) row.peak_bytes = static_cast<double>(*run.peak_bytes);
}

void copy_job_columns(ResultRow& to, const ResultRow& from) {
    for (const ResultColumn& column : result_columns)
        if (column.source == ValueFrom::job) std::visit([&](auto member) { to.*member = from.*member; }, column.member);
}

bool have_same_value(const ResultColumn& column, const ResultRow& a, const ResultRow& b) {
    return std::visit(
        [&](auto member) {
            if constexpr (std::is_same_v<decltype(member), double ResultRow::*>)
                if (std::isnan(a.*member)) return std::isnan(b.*member);
            return a.*member == b.*member;
        },
        column.member);
}

}  // namespace kvscope::trace
