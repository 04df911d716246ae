// Columns of /results/<task>, a one-dimensional table (compound type) with one row for each pair of a sample (or
// prompt) and a run.
#pragma once

#include <limits>
#include <string_view>
#include <variant>

#include "trace/records/records.h"
#include "trace/records/schema.h"

namespace kvscope::trace {

/// What determines a value in the table of prompts: attributes of the model, the prompt and the run; their data sets;
/// or the job that wrote the trace.
enum class ValueFrom { attributes, data_sets, job };

struct ResultColumn {
    using Member = std::variant<SharedText ResultRow::*, std::int64_t ResultRow::*, std::uint64_t ResultRow::*,
                                double ResultRow::*>;
    /// Finite numbers from `low` to `high`.
    struct Range {
        double low = -std::numeric_limits<double>::infinity();
        double high = std::numeric_limits<double>::infinity();
        bool or_nan = false;       ///< whether NaN is valid too; always true in the table of prompts
        bool of_complete = false;  ///< whether only complete runs need a valid number
    };

    std::string_view name;
    Member member;
    schema::Need need;  ///< `always`: in every trace; `sometimes`: only since version 1.2
    ValueFrom source;
    std::string_view meaning;
    Range range = {};
};

namespace columns {
using enum schema::Need;
using enum ValueFrom;

inline constexpr ResultColumn::Range amount{.low = 0};
inline constexpr ResultColumn::Range amount_if_complete{.low = 0, .of_complete = true};
inline constexpr ResultColumn::Range share_if_complete{.low = 0, .high = 1, .of_complete = true};
inline constexpr ResultColumn::Range known_amount{.low = 0, .or_nan = true};
inline constexpr ResultColumn::Range known_share{.low = 0, .high = 1, .or_nan = true};
inline constexpr ResultColumn::Range share_difference{.low = -1, .high = 1, .or_nan = true};
/// For means, which rounding errors may move slightly outside the range.
inline constexpr ResultColumn::Range rounded_amount{.low = -1e-3, .or_nan = true};
inline constexpr ResultColumn::Range rounded_share{.low = -1e-3, .high = 1 + 1e-3, .or_nan = true};

inline constexpr ResultColumn all[] = {
    {"sample_id", &ResultRow::sample_id, always, attributes, "name of the sample in its data set, or of the prompt"},
    {"prompt_hash", &ResultRow::prompt_hash, always, attributes, "SHA-256 of the prompt's text"},
    {"policy", &ResultRow::policy, always, attributes, "attribute `policy` of the run"},
    {"parameters_json", &ResultRow::parameters_json, always, attributes, "attribute `parameters_json` of the run"},
    {"budget", &ResultRow::budget, always, attributes, "attribute `budget` of the run", amount_if_complete},
    {"budget_fraction", &ResultRow::budget_fraction, always, attributes, "attribute `budget_fraction` of the run",
     amount_if_complete},
    {"length", &ResultRow::length, always, attributes, "tokens of the prompt", amount},
    {"depth", &ResultRow::depth, always, attributes, "position of the needle, 0 to 1; NaN without a needle",
     known_share},
    {"prediction", &ResultRow::prediction, always, attributes, "the model's answer"},
    {"answers_json", &ResultRow::answers_json, always, job, "accepted answers as a JSON list"},
    {"metric", &ResultRow::metric, always, job, "name of the metric"},
    {"scored_as", &ResultRow::scored_as, always, job, "rules by which the prediction was scored"},
    {"score", &ResultRow::score, always, job, "0 to 1; NaN without a metric", share_if_complete},
    {"seconds", &ResultRow::seconds, always, attributes, "seconds of the sample, divided equally among its rows",
     known_amount},
    {"kept_share", &ResultRow::kept_share, always, data_sets, "share of the prompt's entries that were kept",
     known_share},
    {"status", &ResultRow::status, always, attributes, "complete, or \"failed: \" and the reason"},
    {"subset", &ResultRow::subset, sometimes, job, "part of the task; empty if it has no parts"},
    {"model", &ResultRow::model, sometimes, attributes, "name of the model"},
    {"dtype", &ResultRow::dtype, sometimes, attributes, "number type of the computation"},
    {"device", &ResultRow::device, sometimes, attributes, "attribute `device` of the run"},
    {"instructions", &ResultRow::instructions, sometimes, attributes, "attribute `instructions` of the run"},
    {"commit", &ResultRow::commit, sometimes, attributes, "attribute `commit` of the run"},
    {"source", &ResultRow::source, sometimes, job, "other program that computed the row; empty for kvscope"},
    {"requested_budget", &ResultRow::requested_budget, sometimes, job,
     "budget as requested: a number of entries, or a share from 0 to 1; empty if unknown"},
    {"sample_hash", &ResultRow::sample_hash, sometimes, job,
     "SHA-256 of context, question and accepted answers, without the template; empty if unknown"},
    {"context_hash", &ResultRow::context_hash, sometimes, job, "SHA-256 of the context; empty if unknown"},
    {"data_hash", &ResultRow::data_hash, sometimes, job,
     "SHA-256 of the sample_hash of all samples of the table; empty if one is unknown"},
    {"seed", &ResultRow::seed, sometimes, attributes, "attribute `seed` of the run"},
    {"question_seen",
     &ResultRow::question_seen,
     sometimes,
     attributes,
     "1 if the policies saw the question, or if there is none; 0 otherwise; -1 if unknown",
     {.low = -1, .high = 1}},
    {"repeat", &ResultRow::repeat, sometimes, data_sets, "number of earlier runs with the same settings", amount},
    {"batch",
     &ResultRow::batch,
     sometimes,
     job,
     "equal sequences that the run decodes as one batch, each with its own cache",
     {.low = 1}},
    {"kl", &ResultRow::kl, sometimes, data_sets, "mean of step_kl, nats", rounded_amount},
    {"kl_stderr", &ResultRow::kl_stderr, sometimes, data_sets, "standard error of kl for independent steps, nats",
     known_amount},
    {"kl_steps", &ResultRow::kl_steps, sometimes, data_sets, "number of values in step_kl", known_amount},
    {"agreement", &ResultRow::agreement, sometimes, data_sets, "mean of step_agreement", known_share},
    {"coverage", &ResultRow::coverage, sometimes, data_sets, "share of the tokens that at least one head keeps",
     known_share},
    {"attention_kept", &ResultRow::attention_kept, sometimes, data_sets, "mean of attention_kept", rounded_share},
    {"recall", &ResultRow::recall, sometimes, data_sets,
     "kept share of the tokens to which the full run's answer attends most, mean over heads", known_share},
    {"output_error", &ResultRow::output_error, sometimes, data_sets, "mean of output_error", known_amount},
    {"bytes", &ResultRow::bytes, sometimes, data_sets, "sum of cache_bytes", known_amount},
    {"bytes_predicted", &ResultRow::bytes_predicted, sometimes, data_sets, "sum of cache_bytes_predicted",
     known_amount},
    {"merged_keys", &ResultRow::merged_keys, sometimes, data_sets, "sum of merged/keys", known_amount},
    {"merged_keys_outside", &ResultRow::merged_keys_outside, sometimes, data_sets, "sum of merged/keys_outside",
     known_amount},
    {"prefill_s", &ResultRow::prefill_s, sometimes, attributes, "attribute `prefill_s` of the run", known_amount},
    {"select_s", &ResultRow::select_s, sometimes, attributes, "attribute `select_s` of the run", known_amount},
    {"first_token_s", &ResultRow::first_token_s, sometimes, attributes, "attribute `first_token_s` of the run",
     known_amount},
    {"decode_s", &ResultRow::decode_s, sometimes, attributes, "attribute `decode_s` of the run", known_amount},
    {"tokens_per_s", &ResultRow::tokens_per_s, sometimes, attributes, "decode_tokens_per_s of the run", known_amount},
    {"peak_bytes", &ResultRow::peak_bytes, sometimes, attributes, "attribute `peak_bytes` of the run", known_amount},
    {"evidence_kept", &ResultRow::evidence_kept, sometimes, job,
     "kept share of the context's tokens that contain an answer, mean over heads", rounded_share},
    {"evidence_gone", &ResultRow::evidence_gone, sometimes, job,
     "share of the context's tokens that contain an answer and that no head keeps", known_share},
    {"system_dropped", &ResultRow::system_dropped, sometimes, data_sets,
     "dropped share of the system prompt's tokens minus that of the other tokens, mean over heads", share_difference},
    {"tied_heads", &ResultRow::tied_heads, sometimes, attributes, "attribute `tied_heads` of the run", known_share},
    {"cause", &ResultRow::cause, sometimes, job, "why the answer is wrong although the full run's answer is right"},
    {"cause_layer", &ResultRow::cause_layer, sometimes, job, "layer of the head that attends to the lost token",
     known_amount},
    {"cause_head", &ResultRow::cause_head, sometimes, job, "KV head that attends to the lost token", known_amount},
    {"cause_gap", &ResultRow::cause_gap, sometimes, job, "entries that this head lacks to keep the token",
     known_amount},
    {"cause_token", &ResultRow::cause_token, sometimes, job, "position of the lost token in the prompt", known_amount},
};
}  // namespace columns

inline constexpr auto& result_columns = columns::all;

/// Returns a row with the columns that attributes of the model and the prompt determine.
[[nodiscard]] ResultRow row_of_prompt(const ModelAttributes& model, const PromptAttributes& prompt);

/// Sets the columns that attributes of the run determine. A failed run has no times.
void add_run_attributes(ResultRow& row, const RunAttributes& run);

/// Copies the columns that the job determines (ValueFrom::job).
void copy_job_columns(ResultRow& to, const ResultRow& from);

/// Whether two rows have the same value in a column. NaN equals NaN.
[[nodiscard]] bool have_same_value(const ResultColumn& column, const ResultRow& a, const ResultRow& b);

}  // namespace kvscope::trace
