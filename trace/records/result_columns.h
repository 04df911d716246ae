// Columns of /results/<task>, a one-dimensional table (compound type) with one row per sample, or prompt, and run.
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
    using Member = std::variant<std::string ResultRow::*, std::int64_t ResultRow::*, std::uint64_t ResultRow::*,
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
    schema::Need need;  ///< `always`: since version 1.0; `sometimes`: since version 1.2
    ValueFrom source;
    std::string_view meaning;
    Range range = {};
};

namespace result_range {
inline constexpr ResultColumn::Range amount{.low = 0};
inline constexpr ResultColumn::Range amount_if_complete{.low = 0, .of_complete = true};
inline constexpr ResultColumn::Range share_if_complete{.low = 0, .high = 1, .of_complete = true};
inline constexpr ResultColumn::Range known_amount{.low = 0, .or_nan = true};
inline constexpr ResultColumn::Range known_share{.low = 0, .high = 1, .or_nan = true};
/// Means of numbers with rounding errors.
inline constexpr ResultColumn::Range rounded_amount{.low = -1e-3, .or_nan = true};
inline constexpr ResultColumn::Range rounded_share{.low = -1e-3, .high = 1 + 1e-3, .or_nan = true};
}  // namespace result_range

inline constexpr ResultColumn result_columns[] = {
    {"sample_id", &ResultRow::sample_id, schema::Need::always, ValueFrom::attributes,
     "name of the sample in its data set, or of the prompt"},
    {"prompt_hash", &ResultRow::prompt_hash, schema::Need::always, ValueFrom::attributes,
     "SHA-256 of the exact prompt"},
    {"policy", &ResultRow::policy, schema::Need::always, ValueFrom::attributes, "as in the run"},
    {"parameters_json", &ResultRow::parameters_json, schema::Need::always, ValueFrom::attributes, "as in the run"},
    {"budget", &ResultRow::budget, schema::Need::always, ValueFrom::attributes, "as in the run",
     result_range::amount_if_complete},
    {"budget_fraction", &ResultRow::budget_fraction, schema::Need::always, ValueFrom::attributes, "as in the run",
     result_range::amount_if_complete},
    {"length", &ResultRow::length, schema::Need::always, ValueFrom::attributes, "tokens of the prompt",
     result_range::amount},
    {"depth", &ResultRow::depth, schema::Need::always, ValueFrom::attributes,
     "position of the needle, 0 to 1; NaN without a needle", result_range::known_share},
    {"prediction", &ResultRow::prediction, schema::Need::always, ValueFrom::attributes, "the model's answer"},
    {"answers_json", &ResultRow::answers_json, schema::Need::always, ValueFrom::attributes,
     "accepted answers as a JSON list"},
    {"metric", &ResultRow::metric, schema::Need::always, ValueFrom::attributes, "name of the metric"},
    {"scored_as", &ResultRow::scored_as, schema::Need::always, ValueFrom::attributes,
     "rules by which the prediction was scored"},
    {"score", &ResultRow::score, schema::Need::always, ValueFrom::attributes, "0 to 1",
     result_range::share_if_complete},
    {"seconds", &ResultRow::seconds, schema::Need::always, ValueFrom::attributes, "seconds for the sample",
     result_range::amount},
    {"kept_share", &ResultRow::kept_share, schema::Need::always, ValueFrom::data_sets,
     "share of the prompt's entries that were kept", result_range::share_if_complete},
    {"status", &ResultRow::status, schema::Need::always, ValueFrom::attributes,
     "complete, or \"failed: \" and the reason"},
    {"model", &ResultRow::model, schema::Need::sometimes, ValueFrom::attributes, "name of the model"},
    {"dtype", &ResultRow::dtype, schema::Need::sometimes, ValueFrom::attributes, "number type of the computation"},
    {"device", &ResultRow::device, schema::Need::sometimes, ValueFrom::attributes, "as in the run"},
    {"instructions", &ResultRow::instructions, schema::Need::sometimes, ValueFrom::attributes, "as in the run"},
    {"commit", &ResultRow::commit, schema::Need::sometimes, ValueFrom::attributes, "as in the run"},
    {"sample_hash", &ResultRow::sample_hash, schema::Need::sometimes, ValueFrom::job,
     "SHA-256 of context, question and accepted answers, without the template; empty if unknown"},
    {"data_hash", &ResultRow::data_hash, schema::Need::sometimes, ValueFrom::job,
     "SHA-256 of the sample_hash of all samples of the table; empty if one is unknown"},
    {"seed", &ResultRow::seed, schema::Need::sometimes, ValueFrom::attributes, "as in the run"},
    {"question_seen",
     &ResultRow::question_seen,
     schema::Need::sometimes,
     ValueFrom::attributes,
     "1 if the policies saw the question, or if there is none; 0 otherwise; -1 if unknown",
     {.low = -1, .high = 1}},
    {"repeat", &ResultRow::repeat, schema::Need::sometimes, ValueFrom::data_sets,
     "number of earlier runs with the same settings", result_range::amount},
    {"kl", &ResultRow::kl, schema::Need::sometimes, ValueFrom::data_sets, "mean of step_kl, nats",
     result_range::rounded_amount},
    {"kl_stderr", &ResultRow::kl_stderr, schema::Need::sometimes, ValueFrom::data_sets,
     "standard error of kl for independent steps, nats", result_range::known_amount},
    {"kl_steps", &ResultRow::kl_steps, schema::Need::sometimes, ValueFrom::data_sets, "number of values in step_kl",
     result_range::known_amount},
    {"agreement", &ResultRow::agreement, schema::Need::sometimes, ValueFrom::data_sets, "mean of step_agreement",
     result_range::known_share},
    {"coverage", &ResultRow::coverage, schema::Need::sometimes, ValueFrom::data_sets,
     "share of the tokens that at least one head keeps", result_range::known_share},
    {"attention_kept", &ResultRow::attention_kept, schema::Need::sometimes, ValueFrom::data_sets,
     "mean of attention_kept", result_range::rounded_share},
    {"recall", &ResultRow::recall, schema::Need::sometimes, ValueFrom::data_sets,
     "kept share of the tokens to which the full run's answer attends most, mean over heads",
     result_range::known_share},
    {"output_error", &ResultRow::output_error, schema::Need::sometimes, ValueFrom::data_sets, "mean of output_error",
     result_range::known_amount},
    {"bytes", &ResultRow::bytes, schema::Need::sometimes, ValueFrom::data_sets, "sum of cache_bytes",
     result_range::known_amount},
    {"bytes_predicted", &ResultRow::bytes_predicted, schema::Need::sometimes, ValueFrom::data_sets,
     "sum of cache_bytes_predicted", result_range::known_amount},
    {"merged_keys", &ResultRow::merged_keys, schema::Need::sometimes, ValueFrom::data_sets, "sum of merged/keys",
     result_range::known_amount},
    {"merged_keys_outside", &ResultRow::merged_keys_outside, schema::Need::sometimes, ValueFrom::data_sets,
     "sum of merged/keys_outside", result_range::known_amount},
    {"prefill_s", &ResultRow::prefill_s, schema::Need::sometimes, ValueFrom::attributes, "as in the run",
     result_range::known_amount},
    {"select_s", &ResultRow::select_s, schema::Need::sometimes, ValueFrom::attributes, "as in the run",
     result_range::known_amount},
    {"first_token_s", &ResultRow::first_token_s, schema::Need::sometimes, ValueFrom::attributes, "as in the run",
     result_range::known_amount},
    {"decode_s", &ResultRow::decode_s, schema::Need::sometimes, ValueFrom::attributes, "as in the run",
     result_range::known_amount},
    {"tokens_per_s", &ResultRow::tokens_per_s, schema::Need::sometimes, ValueFrom::attributes,
     "decode_tokens_per_s of the run", result_range::known_amount},
    {"peak_bytes", &ResultRow::peak_bytes, schema::Need::sometimes, ValueFrom::attributes, "as in the run",
     result_range::known_amount},
};

/// Returns a row with the columns that attributes of the model and the prompt determine.
[[nodiscard]] ResultRow row_of_prompt(const ModelAttributes& model, const PromptAttributes& prompt);

/// Sets the columns that attributes of the run determine. A failed run has no times.
void add_run_attributes(ResultRow& row, const RunAttributes& run);

/// Whether two rows have the same value in a column. NaN equals NaN.
[[nodiscard]] bool have_same_value(const ResultColumn& column, const ResultRow& a, const ResultRow& b);

}  // namespace kvscope::trace
