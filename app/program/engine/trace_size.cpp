#include "app/program/engine/trace_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>

#include "analysis/tables/table_format.h"
#include "engine/common/engine_error.h"
#include "trace/part_folder.h"

namespace kvscope::program {
namespace {

constexpr double bytes_of_trace = 40e3;   // structure of an HDF5 file and the model's record
constexpr double bytes_of_prompt = 12e3;  // structure and attributes of a prompt
constexpr double bytes_of_run = 6e3;      // structure and attributes of a run
constexpr double stored_share = 0.85;     // of floats after compression

/// Returns the size of a row of /results, with an answer of `n_new` tokens.
double bytes_of_row(int64_t n_new) { return 450 + 5 * static_cast<double>(n_new); }

bool stores_only_rows(const RunJob& job) { return job.task != nullptr || job.experiment.stores_only_rows(); }

/// Returns the bytes of the data sets that docs/trace-format.md lists under prompts/ and runs/.
double bytes_of_recorded_prompt(const PreparedJob& prepared, const engine::Model& model, const engine::Prompt& prompt) {
    const policies::ModelShape shape = engine::shape_of(model.config());
    const engine::ExperimentOptions& options = prepared.job.experiment;
    const double layers = shape.n_layers, heads = shape.n_heads, kv_heads = shape.n_kv_heads, dim = shape.head_dim;
    const auto n_tokens = static_cast<double>(prompt.n_visible());
    const double window = std::min(static_cast<double>(options.window), n_tokens);
    const bool stores_tokens = options.record && !options.stores_only_measures();
    double of_full = 20 * n_tokens;
    if (options.record) of_full += layers * dim * (heads + 2 * kv_heads);
    if (stores_tokens)
        of_full += static_cast<double>(model.config().vocab_size) +
                   layers * (n_tokens * (heads + kv_heads) + heads * window * window);
    double of_runs = 0;
    std::set<std::string> with_scores;  // runs that differ only in the budget share their scores
    for (const engine::RunPlan& plan : prepared.plans) {
        if (plan.spec.definition->is_full()) continue;
        const double kept = plan.budget.is_share ? plan.budget.share * n_tokens
                                                 : std::min(static_cast<double>(plan.budget.count), n_tokens);
        of_runs += layers * kv_heads * kept * 0.2;  // increasing positions compress well
        if (stores_tokens && options.compare) of_runs += layers * n_tokens;
        if (stores_tokens && with_scores.insert(plan.spec.label()).second) of_runs += layers * kv_heads * n_tokens;
    }
    return sizeof(float) * stored_share * (of_full + of_runs) + bytes_of_prompt +
           (bytes_of_run + bytes_of_row(options.n_new)) * static_cast<double>(prepared.plans.size());
}

double bytes_of_prompt_rows(const PreparedJob& prepared) {
    return bytes_of_row(prepared.job.experiment.n_new) * static_cast<double>(prepared.plans.size());
}

}  // namespace

double predicted_prompt_bytes(const PreparedJob& prepared, const engine::Model& model, size_t prompt) {
    return stores_only_rows(prepared.job) ? bytes_of_prompt_rows(prepared)
                                          : bytes_of_recorded_prompt(prepared, model, prepared.prompts[prompt]);
}

double predicted_trace_bytes(const PreparedJob& prepared, const engine::Model& model) {
    double bytes = bytes_of_trace;
    for (size_t i = 0; i < prepared.prompts.size(); ++i) bytes += predicted_prompt_bytes(prepared, model, i);
    return bytes;
}

void require_trace_within_limit(const PreparedJob& prepared, const engine::Model& model) {
    const double limit = static_cast<double>(prepared.job.most_disk_bytes);
    if (limit == 0) return;
    const double bytes = predicted_trace_bytes(prepared, model);
    if (bytes <= limit) return;
    const double of_rows =
        bytes_of_trace + bytes_of_prompt_rows(prepared) * static_cast<double>(prepared.prompts.size());
    throw engine::UsageError(fmt::format(
        "the trace needs about {}, more than --max-disk {}: use fewer prompts, policies or budgets{}, or a larger "
        "--max-disk",
        analysis::format_bytes(bytes), analysis::format_bytes(limit),
        stores_only_rows(prepared.job) ? ""
                                       : fmt::format(", --record rows (about {})", analysis::format_bytes(of_rows))));
}

void require_free_space(const PreparedJob& prepared, const engine::Model& model) {
    namespace fs = std::filesystem;
    const fs::path output = trace::resolve_output_links(prepared.job.output);
    const fs::path part = trace::part_folder_of(output);
    std::error_code error;
    const fs::path folder = output.has_parent_path() ? output.parent_path() : fs::path(".");
    const fs::space_info space = fs::space(folder, error);
    if (error) return;  // the writer reports a folder that cannot be used
    const double predicted = predicted_trace_bytes(prepared, model);
    double stored = 0;
    const auto add_file = [&](const fs::path& file) {
        std::error_code unknown_size;
        const auto bytes = fs::file_size(file, unknown_size);
        if (!unknown_size) stored += static_cast<double>(bytes);
    };
    // With --force, the writer removes the files of a folder that it does not resume.
    for (fs::directory_iterator entry(part, error), end; !error && entry != end; entry.increment(error))
        if (entry->path().filename() != trace::part_file_name_of_base_trace()) add_file(entry->path());
    if (prepared.n_prompts_there > 0) add_file(output);
    // The parts, and the trace that is extended, are removed after they are joined in another file.
    const double needed = std::max(predicted - stored, 0.0) + predicted;
    const auto free = static_cast<double>(space.available);
    if (needed <= free) return;
    throw engine::RunError(fmt::format(
        "the trace {} needs about {}{} until its parts are joined, but its disk has only {} free: free some "
        "space, name an output on another disk, or use fewer prompts, policies or budgets{}",
        output.string(), analysis::format_bytes(needed), stored > 0 ? " more" : "", analysis::format_bytes(free),
        stores_only_rows(prepared.job) ? "" : ", or --record rows"));
}

void require_prompt_within_limit(const PreparedJob& prepared, const engine::Model& model, const trace::Writer& writer,
                                 size_t prompt) {
    const double limit = static_cast<double>(prepared.job.most_disk_bytes);
    const auto stored = static_cast<double>(writer.stored_bytes());
    if (limit == 0 || stored + predicted_prompt_bytes(prepared, model, prompt) <= limit) return;
    throw engine::RunError(
        fmt::format("{} has {}, and the next of {} prompts would exceed --max-disk {}. The finished prompts are kept: "
                    "repeat the command with a larger --max-disk to continue",
                    trace::part_folder_of(prepared.job.output).string(), analysis::format_bytes(stored),
                    prepared.prompts.size(), analysis::format_bytes(limit)));
}

}  // namespace kvscope::program
