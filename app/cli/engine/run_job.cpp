#include "app/cli/engine/run_job.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "app/cli/engine/terminal_progress.h"
#include "app/program/paths.h"
#include "app/program/version.h"
#include "engine/device.h"
#include "engine/error.h"
#include "engine/spectra.h"
#include "policies/interface/budget.h"
#include "trace/reader.h"

namespace kvscope::cli {
namespace {

std::vector<engine::RunPlan> plans_of(const RunJob& job) {
    std::vector<policies::Budget> budgets;
    for (const auto& text : job.budgets) {
        for (const auto& budget : policies::parse_budgets(text)) budgets.push_back(budget);
    }
    std::vector<engine::RunPlan> plans;
    for (const auto& text : job.policies) {
        const auto spec = policies::parse_policy(text);
        if (spec.definition->name == "full") continue;
        if (budgets.empty())
            throw std::invalid_argument("--policy " + text +
                                        " needs a --budget: entries kept per KV head and layer (128), " +
                                        "or the share kept (0.2, 20%)");
        for (const auto& budget : budgets) plans.push_back({spec, budget});
    }
    return engine::with_full_run(std::move(plans));
}

/// "trace.h5:2" as the file and the prompt; without a number, or where a file is called so, prompt 0 of it.
std::pair<std::filesystem::path, int> trace_and_prompt(const std::string& text) {
    const size_t colon = text.rfind(':');
    std::error_code error;
    if (colon == std::string::npos || std::filesystem::exists(text, error)) return {text, 0};
    int prompt = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + colon + 1, end, prompt);
    if (read.ec != std::errc() || read.ptr != end || prompt < 0) return {text, 0};
    return {text.substr(0, colon), prompt};
}

struct StoredPrompt {
    trace::Reader reader;
    int prompt = 0;
};

std::optional<StoredPrompt> prompt_from(const RunJob& job) {
    if (job.prompt_from.empty()) return std::nullopt;
    const auto [path, prompt] = trace_and_prompt(job.prompt_from);
    return StoredPrompt{trace::Reader(path), prompt};
}

std::vector<engine::Prompt> prompts_of(const RunJob& job, const std::optional<StoredPrompt>& stored,
                                       const engine::Model& model) {
    if (stored) return {engine::stored_prompt(model, stored->reader, stored->prompt, job.experiment.n_new)};
    std::vector<engine::Prompt> prompts;
    for (const auto& text : job.prompts) {
        const engine::PromptOptions options{text.name, job.use_template, job.query_aware, job.experiment.n_new};
        if (text.questions.empty()) prompts.push_back(engine::prepare_prompt(model, text.context, "", options));
        for (const auto& question : text.questions)
            prompts.push_back(engine::prepare_prompt(model, text.context, question, options));
    }
    return prompts;
}

/// What each budget comes to on this prompt, kept and removed, once for all policies that have it.
void describe_budgets(std::span<const engine::RunPlan> plans, const engine::Prompt& prompt,
                      TerminalProgress& progress) {
    std::vector<policies::Budget> shown;
    for (const auto& plan : plans) {
        const bool is_known = std::find(shown.begin(), shown.end(), plan.budget) != shown.end();
        if (plan.spec.definition->name == "full" || is_known) continue;
        shown.push_back(plan.budget);
        try {
            progress.message(
                fmt::format("budget {}: {}", plan.budget.text(), plan.budget.describe(prompt.n_visible())));
        } catch (const std::invalid_argument&) {
            // Reported by the run that cannot take it.
        }
    }
}

/// Takes back a trace that was begun and in which nothing was finished: a wrong option must not leave a folder that
/// stands in the way of the right one.
void remove_begun_trace(const std::filesystem::path& output) {
    std::filesystem::path folder = output;
    folder += ".part";
    std::error_code error;
    std::filesystem::remove_all(folder, error);
}

void write_timings(const RunJob& job, const engine::Timings& timings, double load_s) {
    if (job.timings.empty()) return;
    const nlohmann::ordered_json json = {{"n_prompt", timings.n_prompt_tokens}, {"n_runs", timings.n_runs},
                                         {"n_generated", timings.n_generated},  {"load_s", load_s},
                                         {"prefill_s", timings.prefill_s},      {"observe_s", timings.record_s},
                                         {"select_s", timings.select_s},        {"question_s", timings.question_s},
                                         {"decode_s", timings.decode_s},        {"step_kl_s", timings.compare_s},
                                         {"write_s", timings.write_s},          {"total_s", timings.total_s}};
    std::ofstream file(job.timings);
    file << json.dump(2) << '\n';
    file.close();
    if (!file) throw std::runtime_error(job.timings.string() + " cannot be written");
}

}  // namespace

int run(const RunJob& job) {
    const auto plans = plans_of(job);
    const auto stored = prompt_from(job);
    const auto device = engine::device_from_name(job.device);
    const auto dtype = engine::dtype_from_name(job.dtype);
    const auto model_path = job.model.empty() ? program::default_model() : job.model;
    engine::require_runnable(device);
    if (job.threads > 0) omp_set_num_threads(job.threads);

    TerminalProgress progress(job.quiet);
    const auto load_start = std::chrono::steady_clock::now();
    const auto model = engine::Model::open(model_path, dtype, progress);
    const double load_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - load_start).count();
    const auto prompts = prompts_of(job, stored, model);
    for (const auto& prompt : prompts) {
        progress.message(fmt::format("{}: {} tokens{}", prompt.name, prompt.ids.size(),
                                     prompt.query_aware ? "" : fmt::format(", policies see {}", prompt.n_context)));
    }
    describe_budgets(plans, prompts.front(), progress);
    std::string recipe = engine::recipe_json(model, prompts, plans, job.experiment);
    if (job.analyze) {
        auto json = nlohmann::ordered_json::parse(recipe);
        json["analyze"] = true;
        recipe = json.dump();
    }
    bool is_begun = false;  // anew, and still empty of results
    try {
        trace::Writer writer(job.output, recipe, {job.force, fmt::format("kvscope {}", program::version())});
        is_begun = !writer.resumed();
        if (writer.resumed()) progress.message(fmt::format("resuming {}", job.output.string()));
        if (!writer.has_model()) {
            trace::ModelRecord record;
            static_cast<trace::ModelAttributes&>(record) = model.attributes();
            if (job.analyze) engine::add_spectra(model.checkpoint(), model.fingerprint(), record, progress);
            writer.write_model(record);
        }
        engine::Experiment experiment(model, plans, job.experiment, writer, progress);
        experiment.on_run = [&](int, int, const trace::RunRecord& record) {
            is_begun = false;
            if (record.status == "failed") progress.message(fmt::format("{} failed: {}", record.label, record.message));
        };
        experiment.run(prompts);
        writer.finish();
        write_timings(job, experiment.timings(), load_s);
        progress.message(fmt::format("{} written", job.output.string()));
        return experiment.n_failed() > 0 ? 1 : 0;
    } catch (const trace::AlreadyComplete&) {
        progress.message(fmt::format("{} holds this very trace already: nothing to do", job.output.string()));
        return 0;
    } catch (const std::invalid_argument&) {
        if (is_begun) remove_begun_trace(job.output);
        throw;
    } catch (const engine::Cancelled&) {
        throw std::runtime_error(fmt::format(
            "stopped; what was finished is in {}.part, and the same command goes on from there", job.output.string()));
    }
}

}  // namespace kvscope::cli
