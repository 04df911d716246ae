#include "app/program/engine/prepared_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "app/program/engine/failed_runs.h"
#include "app/program/engine/prompt_rows.h"
#include "app/program/engine/token_clock.h"
#include "app/program/engine/trace_size.h"
#include "app/program/version.h"
#include "common/bounded_json.h"
#include "common/counted.h"
#include "common/json.h"
#include "common/whole_file.h"
#include "engine/common/engine_error.h"
#include "engine/common/stopwatch.h"
#include "engine/projection_spectra.h"
#include "engine/recipe_json.h"
#include "engine/run_requirements.h"
#include "engine/trace_extension.h"
#include "trace/creation_time.h"
#include "trace/part_folder.h"
#include "trace/reader.h"
#include "trace/recipe.h"

namespace kvscope::program {
namespace {

/// Prompts of a trace, or one sample of a task.
struct PromptSource {
    std::filesystem::path trace;
    std::vector<int> prompts = {0};
    std::string sample{};  ///< name of the sample; empty for prompts
};

/// Splits "trace.h5:2", "trace.h5:0,1" or "trace.h5:SAMPLE". Without a part after the file, returns prompt 0.
PromptSource prompt_source(const std::string& text) {
    std::error_code error;
    if (std::filesystem::exists(text, error)) return {text};
    const size_t last = text.rfind(':');
    if (last == std::string::npos) return {text};
    std::vector<int> prompts;
    const char* const end = text.data() + text.size();
    for (const char* at = text.data() + last + 1;; ++at) {
        int prompt = 0;
        const auto read = std::from_chars(at, end, prompt);
        if (read.ec != std::errc() || prompt < 0 || (read.ptr != end && *read.ptr != ',')) break;
        prompts.push_back(prompt);
        if (read.ptr == end) return {text.substr(0, last), std::move(prompts)};
        at = read.ptr;
    }
    // The name of a sample may contain colons, and so may the path.
    for (size_t colon = text.find(':'); colon != std::string::npos; colon = text.find(':', colon + 1))
        if (std::filesystem::exists(text.substr(0, colon), error) && colon + 1 < text.size())
            return {text.substr(0, colon), {}, text.substr(colon + 1)};
    return {text};
}

engine::PromptOptions prompt_options(const RunJob& job, std::time_t now, const std::stop_token& stop) {
    return {.use_template = job.experiment.use_template,
            .query_aware = job.experiment.query_aware,
            .n_new = job.experiment.n_new,
            .parse_special = job.experiment.parse_special,
            .now = now,
            .stop = stop};
}

/// @param left_out gets the reasons for prompts that cannot be run, if there are other prompts
std::vector<engine::Prompt> prompts_of(const RunJob& job, const engine::Model& model, std::time_t now,
                                       const std::stop_token& stop, std::vector<std::string>& left_out) {
    if (!job.prompt_from.empty()) {
        const auto [path, numbers, sample] = prompt_source(job.prompt_from);
        const trace::Reader reader(path);
        if (!sample.empty()) return {engine::read_sample_from_trace(model, reader, sample, job.experiment.n_new, stop)};
        std::vector<engine::Prompt> stored;
        for (const int number : numbers)
            stored.push_back(engine::read_prompt_from_trace(model, reader, number, job.experiment.n_new, stop));
        return stored;
    }
    std::vector<engine::Prompt> prompts;
    std::exception_ptr refused;
    const auto add = [&](const PromptText& text, const std::string& question) {
        engine::PromptOptions options = prompt_options(job, now, stop);
        options.name = text.name;
        options.answers = text.answers;
        options.origin = text.origin;
        try {
            prompts.push_back(engine::tokenize_prompt(model, text.context, question, options));
        } catch (const engine::UsageError& error) {
            if (!refused) refused = std::current_exception();
            left_out.emplace_back(error.what());
        }
    };
    for (const PromptText& text : job.prompts) {
        if (text.questions.empty()) add(text, "");
        for (const std::string& question : text.questions) add(text, question);
    }
    if (prompts.empty() && refused) std::rethrow_exception(refused);
    return prompts;
}

}  // namespace

std::string left_out_warning(const RunJob& job, const std::string& reason) {
    return reason + (job.task ? ". This sample is left out" : ". This prompt is left out");
}

std::filesystem::path trace_of_prompts(const RunJob& job) { return prompt_source(job.prompt_from).trace; }

void check_prompt_trace_is_readable(const RunJob& job) {
    if (!job.prompt_from.empty()) trace::Reader(trace_of_prompts(job));
}

namespace {

/// Whether the folder contains no results, no answers and no files of other programs.
bool is_worthless(const std::filesystem::path& folder, bool with_prompts) {
    const trace::Parts parts = trace::list_parts(folder);
    if (!parts.runs.empty() || !parts.results.empty() || (!with_prompts && !parts.prompts.empty())) return false;
    if (std::filesystem::exists(folder / trace::answers_name) || !trace::foreign_entry(folder).empty()) return false;
    const std::filesystem::directory_iterator entries(folder);
    return std::none_of(begin(entries), end(entries),
                        [](const auto& entry) { return trace::is_damaged_part_set_aside(entry.path()); });
}

void remove_trace_without_runs(const std::filesystem::path& output, bool with_prompts) {
    const std::filesystem::path folder = trace::part_folder_of(output);
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error)) return;
    try {
        const trace::FolderLock held(folder);
        if (is_worthless(folder, with_prompts)) trace::remove_folder(folder);
    } catch (const std::runtime_error&) {
        // The folder stays if another process uses it or if it cannot be removed.
    }
}

}  // namespace

void remove_part_folder_without_results(const std::filesystem::path& output) {
    remove_trace_without_runs(output, true);
}

void remove_part_folder_without_prompts(const std::filesystem::path& output) {
    remove_trace_without_runs(output, false);
}

namespace {

PreparedJob begin_preparing(std::time_t now, const RunJob& job, std::vector<engine::RunPlan> plans) {
    PreparedJob prepared{.job = job, .plans = std::move(plans)};
    prepared.job.experiment.commit = commit();
    prepared.options = {.force = job.force, .generator = fmt::format("kvscope {}", version()), .created = now};
    return prepared;
}

void accept_parts_of_recipe(PreparedJob& prepared) {
    prepared.options.is_part_of_it = [wanted = prepared.recipe](const std::string& other) {
        return trace::can_extend_recipe_to(other, wanted);
    };
}

void require_same_tokens(const trace::Reader& stored, std::span<const engine::Prompt> prompts) {
    for (int i = 0; i < stored.n_prompts(); ++i) {
        const auto number = static_cast<size_t>(stored.prompt_number(i));
        if (number >= prompts.size()) continue;
        const auto& prompt = prompts[number];
        const auto ids = stored.token_ids(i);
        const int64_t n_context = stored.prompt(i).n_context;
        if (ids == prompt.ids && n_context == prompt.n_context) continue;
        const auto at = std::mismatch(ids.begin(), ids.end(), prompt.ids.begin(), prompt.ids.end()).first - ids.begin();
        const std::string other =
            ids == prompt.ids ? fmt::format("another position of the question's first token ({} in the file, {} now)",
                                            n_context, prompt.n_context)
                              : fmt::format("different tokens from token {} on ({} tokens in the file, {} now)", at,
                                            ids.size(), prompt.ids.size());
        std::string why = "another version of the tokenizer or of kvscope wrote the file";
        if (engine::recipe_lacks_token_ids(stored.recipe_json()))
            why = "an earlier version of kvscope wrote the file and tokenized context and question separately";
        else if (ids != prompt.ids && prompt.chat_template.empty() && prompt.parses_special)
            why +=
                ". An earlier version read control tokens in a text without chat template as plain text, as with "
                "--no-special";
        throw trace::ReplaceableOutputExists(
            fmt::format("{} contains the prompt \"{}\" with {}: {}. Choose another output, or replace the file",
                        stored.path().string(), prompt.name, other, why));
    }
}

PreparedJob prepare_prompts_at(std::time_t now, const RunJob& job, std::vector<engine::RunPlan> plans,
                               const engine::Model& model, const std::stop_token& stop) {
    PreparedJob whole = begin_preparing(now, job, std::move(plans));
    whole.prompts = prompts_of(job, model, now, stop, whole.left_out);
    std::optional<ShardOfJob> shard;
    if (job.shard) {
        std::vector<nlohmann::ordered_json> entries;
        for (const auto& prompt : whole.prompts) entries.push_back(engine::recipe_of_prompt(prompt));
        shard.emplace(*job.shard, engine::group_by_shared_context(whole.prompts), entries, whole.left_out);
        whole.prompts = shard->select(std::move(whole.prompts));
    }
    const std::string complete = trace::read_recipe_of_trace(job.output);
    const std::string begun = trace::read_recipe_of_trace(trace::part_folder_of(job.output));
    const auto recipe_of = [&](const PreparedJob& one) {
        const std::string asked = engine::recipe_json(model, one.prompts, one.plans, job.experiment);
        std::string wanted = engine::recipe_with_render_times(asked, one.prompts, now);
        if (shard) wanted = shard->complete_recipe(wanted);
        if (job.force) return wanted;
        return engine::with_stored_prompt_entries(begun, engine::with_stored_prompt_entries(complete, wanted));
    };
    if (!job.force) {
        whole.prompts = engine::in_order_of_recipe(complete, std::move(whole.prompts));
        whole.plans = engine::in_order_of_recipe(complete, std::move(whole.plans), true);
        // If a complete trace contains everything that the command requests, an unfinished extension of the trace is
        // ignored.
        if (!trace::can_extend_recipe_to(recipe_of(whole), complete)) {
            PreparedJob continued = whole;
            continued.prompts = engine::in_order_of_recipe(begun, std::move(continued.prompts));
            continued.plans = engine::in_order_of_unfinished_trace(begun, std::move(continued.plans));
            continued.n_continued = continued.plans.size() - whole.plans.size();
            if (trace::can_extend_recipe_to(begun, recipe_of(continued))) whole = std::move(continued);
        }
        whole.recipe = recipe_of(whole);
        accept_parts_of_recipe(whole);
        if (whole.options.is_part_of_it(complete)) {
            const trace::Reader stored(job.output);
            require_same_tokens(stored, whole.prompts);
            engine::refuse_questions_that_change_runs(stored, whole.prompts, whole.plans);
            const auto there = nlohmann::json::parse(complete);
            whole.n_prompts_there = there["prompts"].size();
            whole.n_plans_there = there["runs"].size();
            if (whole.prompts.size() > whole.n_prompts_there) engine::require_recorded_files(job.output, whole.plans);
        }
        const auto folder = trace::part_folder_of(job.output);
        if (whole.options.is_part_of_it(trace::read_recipe_of_trace(folder))) {
            const trace::Reader unfinished(folder);
            require_same_tokens(unfinished, whole.prompts);
            engine::refuse_questions_that_change_runs(unfinished, whole.prompts, whole.plans);
        }
    } else {
        whole.recipe = recipe_of(whole);
    }
    return whole;
}

/// Whether the recipe is of a trace that `--query-aware off` began: the number of a sample whose question is hidden has
/// no offset.
bool hides_questions_without_offset(const std::string& recipe_json) {
    const auto recipe = bounded_json::parse_or_discard(recipe_json);
    const auto prompts = recipe.is_object() ? recipe.find("prompts") : recipe.end();
    return prompts != recipe.end() && std::ranges::any_of(*prompts, [](const nlohmann::json& entry) {
               return entry.is_object() && entry.contains("number") && entry["number"].is_number_integer() &&
                      entry["number"] < engine::hidden_question_offset &&
                      entry.value("query_aware", nlohmann::json()) == false;
           });
}

/// Gives the offset to the sample with the visible question instead of the sample with the hidden question.
void exchange_numbers(std::vector<engine::PreparedSample>& samples) {
    for (size_t i = 0; i + 1 < samples.size(); ++i)
        if (samples[i + 1].number == samples[i].number + engine::hidden_question_offset)
            std::swap(samples[i].number, samples[i + 1].number);
}

PreparedJob prepare_samples_at(std::time_t now, const RunJob& job, std::vector<engine::RunPlan> plans,
                               const engine::Model& model, const std::stop_token& stop) {
    const std::string complete = trace::read_recipe_of_trace(job.output);
    size_t n_continued = 0;
    if (!job.force) {
        n_continued = engine::in_order_of_recipe(complete, plans, true).size();
        plans = engine::in_order_of_recipe(complete, trace::read_recipe_of_trace(trace::part_folder_of(job.output)),
                                           std::move(plans));
        n_continued = plans.size() - n_continued;
    }
    PreparedJob prepared = begin_preparing(now, job, std::move(plans));
    prepared.n_continued = n_continued;
    prepared.samples =
        engine::prepare_samples(model, *job.task, read_task_files(*job.task, job.task_values),
                                prompt_options(job, now, stop), job.asks_in_both_ways, &prepared.left_out);
    if (job.asks_in_both_ways && !job.force &&
        (hides_questions_without_offset(complete) ||
         hides_questions_without_offset(trace::read_recipe_of_trace(trace::part_folder_of(job.output)))))
        exchange_numbers(prepared.samples);
    for (const auto& sample : prepared.samples) prepared.prompts.push_back(sample.prompt);
    auto recipe =
        nlohmann::ordered_json::parse(engine::recipe_json(model, prepared.prompts, prepared.plans, job.experiment));
    recipe["task"] = job.task->name;
    // Results are stored by sample number. With other options, a number means another sample.
    for (size_t i = 0; i < prepared.samples.size(); ++i) {
        auto& entry = recipe["prompts"][i];
        entry["number"] = prepared.samples[i].number;
        if (!job.task->text_determines_answers) entry["answers"] = prepared.samples[i].answers;
        const auto& scorer = prepared.samples[i].scorer;
        if (scorer && scorer->scored_as != job.task->scorer.scored_as) entry["scored_as"] = scorer->scored_as;
    }
    if (job.shard) {
        auto entries = recipe["prompts"].get<std::vector<nlohmann::ordered_json>>();
        std::vector<std::vector<int>> prefills;  // one per sample
        for (size_t i = 0; i < entries.size(); ++i) prefills.push_back({static_cast<int>(i)});
        const ShardOfJob shard(*job.shard, prefills, entries, prepared.left_out);
        prepared.samples = shard.select(std::move(prepared.samples));
        prepared.prompts = shard.select(std::move(prepared.prompts));
        recipe["prompts"] = shard.select(std::move(entries));
        prepared.recipe = shard.complete_recipe(recipe.dump());
    } else {
        prepared.recipe = recipe.dump();
    }
    if (job.force) return prepared;
    if (engine::recipe_lacks_token_ids(complete))
        throw trace::ReplaceableOutputExists(fmt::format(
            "{} was written by an earlier version of kvscope, which tokenized context and question "
            "separately. Its answers belong to other tokens. Choose another output, or allow the file to be replaced",
            job.output.string()));
    accept_parts_of_recipe(prepared);
    if (prepared.options.is_part_of_it(complete)) {
        const auto there = nlohmann::json::parse(complete);
        prepared.n_prompts_there = there["prompts"].size();
        prepared.n_plans_there = there["runs"].size();
        if (prepared.samples.size() > prepared.n_prompts_there)
            engine::require_recorded_files(job.output, prepared.plans);
    }
    return prepared;
}

/// Renders chat templates with the creation time of an existing trace, because the rendered text may contain the date.
PreparedJob prepare_for_output(const RunJob& job, const std::vector<engine::RunPlan>& plans, const engine::Model& model,
                               const std::stop_token& stop) {
    const auto prepare_at = job.task ? prepare_samples_at : prepare_prompts_at;
    if (const auto stored = trace::creation_time(job.output)) {
        PreparedJob whole = prepare_at(*stored, job, plans, model, stop);
        // With --force, a new trace with today's date replaces a trace of another recipe.
        if (!job.force ||
            trace::check_output_state(job.output, whole.recipe, whole.options) == trace::OutputState::resumable)
            return whole;
    }
    const auto of_others =
        job.shard && !job.force ? creation_time_of_other_shards(job.output, *job.shard) : std::nullopt;
    return prepare_at(of_others.value_or(std::time(nullptr)), job, plans, model, stop);
}

PreparedJob prepare_profile(const RunJob& job, std::vector<engine::RunPlan> plans, const engine::Model& model,
                            const std::stop_token& stop) {
    const std::time_t now = std::time(nullptr);
    PreparedJob prepared = begin_preparing(now, job, std::move(plans));
    prepared.samples =
        engine::prepare_head_profile(model, *job.profile, read_task_files(engine::head_profile_task(), job.task_values),
                                     prompt_options(job, now, stop));
    for (const auto& sample : prepared.samples) prepared.prompts.push_back(sample.prompt);
    return prepared;
}

/// Returns the full run and the runs that the trace does not yet contain for this prompt.
std::vector<engine::RunPlan> plans_left(const PreparedJob& whole, size_t prompt) {
    std::vector<engine::RunPlan> left = whole.plans;
    if (prompt < whole.n_prompts_there && whole.n_plans_there > 0)
        left.erase(left.begin() + 1, left.begin() + static_cast<std::ptrdiff_t>(whole.n_plans_there));
    return left;
}

}  // namespace

PreparedJob prepare_job(const RunJob& job, const std::vector<engine::RunPlan>& plans, const engine::Model& model,
                        const std::stop_token& stop) {
    if (job.profile) return prepare_profile(job, plans, model, stop);
    return prepare_for_output(job, plans, model, stop);
}

void check_job(const PreparedJob& prepared, const engine::Model& model) {
    const auto& prompts = prepared.prompts;
    if (!prepared.job.profile) require_trace_within_limit(prepared, model);
    const auto n_tokens = [](const engine::Prompt& prompt) { return prompt.ids.size(); };
    if (prepared.job.task) {  // Counts can fail on long samples, shares on short ones. One possible run suffices.
        const auto [shortest, longest] = std::ranges::minmax_element(prompts, {}, n_tokens);
        try {
            engine::require_any_possible_run(model, *longest, plans_left(prepared, 0));
        } catch (const engine::UsageError&) {
            engine::require_any_possible_run(model, *shortest, plans_left(prepared, 0));
        }
    }
    for (size_t i = 0; !prepared.job.task && i < prompts.size(); ++i)
        engine::require_any_possible_run(model, prompts[i], plans_left(prepared, i));
    if (!prepared.job.profile) {
        std::error_code error;
        const auto& output = prepared.job.output;
        const bool is_begun = std::filesystem::exists(trace::part_folder_of(output), error);
        const auto found = trace::check_output_state(output, prepared.recipe, prepared.options);
        const bool is_extension = found == trace::OutputState::resumable && !is_begun;
        if (found != trace::OutputState::complete) require_free_space(prepared, model);
        if (found != trace::OutputState::absent && !is_extension)
            return;  // an existing trace shows that the memory suffices
    }
    const size_t longest_list = prepared.n_prompts_there < prompts.size() ? prepared.n_prompts_there : 0;
    engine::ExperimentOptions options = prepared.job.experiment;
    for (const auto& sample : prepared.samples) options.batch = std::max(options.batch, sample.batch);
    engine::require_memory(model, prompts, plans_left(prepared, longest_list), options,
                           !prepared.job.task     ? "use a shorter prompt, fewer policies and budgets, or --isolated"
                           : prepared.job.profile ? "use shorter --lengths"
                           : prepared.job.task_values.has("lengths")
                               ? "use shorter --lengths, or fewer policies or budgets"
                               : "use shorter samples, or fewer policies or budgets");
}

namespace {

/// Writes the spectra only after the answers, because computing them can take longer than all answers.
void write_model(trace::Writer& writer, const engine::Model& model, bool with_spectra, engine::Progress& progress) {
    trace::ModelRecord record;
    static_cast<trace::ModelAttributes&>(record) = model.attributes();
    if (with_spectra) engine::add_projection_spectra(model.checkpoint(), model.fingerprint(), record, progress);
    writer.write_model(record);
}

/// Copies results from an earlier complete trace that has fewer samples or runs.
void copy_finished_samples(const PreparedJob& prepared, trace::Writer& writer) {
    if (prepared.n_prompts_there == 0) return;
    const std::string& task = prepared.job.task->name;
    std::map<std::pair<std::string, bool>, std::vector<trace::ResultRow>> finished;  // by name and question_seen
    for (auto& row : trace::Reader(prepared.job.output).results(task))
        finished[{row.sample_id, row.question_seen != 0}].push_back(std::move(row));
    for (const auto& sample : prepared.samples) {
        const auto rows = finished.find({sample.id, sample.prompt.query_aware});
        if (rows == finished.end() || writer.has_results(task, sample.number)) continue;
        // Earlier versions did not write the hashes.
        for (trace::ResultRow& row : rows->second) {
            row.sample_hash = sample.hash();
            row.context_hash = sample.prompt.context_hash;
        }
        writer.write_results(task, sample.number, rows->second);
    }
}

void answer_samples(const PreparedJob& prepared, const engine::Model& model, trace::Writer& writer,
                    engine::Progress& progress, const RunEvents& events, FailedRuns& failures) {
    const engine::Task& task = *prepared.job.task;
    const auto& samples = prepared.samples;
    copy_finished_samples(prepared, writer);
    TokenClock clock(prepared.prompts);
    const auto is_done = [&](size_t i) {
        return writer.has_results(task.name, samples[i].number) &&
               writer.results(task.name, samples[i].number).size() >= prepared.plans.size();
    };
    const auto on_sample_begun = [&](size_t i) {
        require_prompt_within_limit(prepared, model, writer, i);
        if (events.on_sample_begun) events.on_sample_begun(i);
    };
    const auto on_sample = [&](size_t i, std::span<const trace::ResultRow> rows, double seconds) {
        failures.report(samples[i].id, rows);
        clock.finish(i, seconds);
        if (events.on_sample) events.on_sample(i, rows, seconds, clock.seconds_left(i + 1, is_done));
    };
    engine::evaluate_task(model, task, samples, prepared.plans, prepared.job.experiment, writer, progress, on_sample,
                          on_sample_begun);
}

/// A profile takes minutes, so a stopped profile has no state from which it could resume.
void write_profile(const PreparedJob& prepared, const engine::Model& model, engine::Progress& progress,
                   const RunEvents& events) {
    const RunJob& job = prepared.job;
    const auto& samples = prepared.samples;
    TokenClock clock(prepared.prompts);
    const auto on_sample = [&](size_t i, bool is_right, double seconds) {
        trace::ResultRow row;
        row.score = is_right ? 1 : 0;
        clock.finish(i, seconds);
        const double seconds_left = clock.seconds_left(i + 1, [](size_t) { return false; });
        if (events.on_sample) events.on_sample(i, {&row, 1}, seconds, seconds_left);
    };
    const auto profile = engine::profile_heads(model, *job.profile, samples, job.experiment.n_new, progress, on_sample);
    write_whole_file(job.output, engine::to_headkv_json(profile, model.transformer().shape()), job.force);
    progress.message(fmt::format("{} written: {} of {} prompts had correct answers and were counted",
                                 job.output.string(), profile.n_right, samples.size()));
}

engine::Timings answer_prompts(const PreparedJob& prepared, const engine::Model& model, trace::Writer& writer,
                               engine::Progress& progress, const RunEvents& events, FailedRuns& failures,
                               const Warn& warn) {
    engine::Experiment experiment(model, prepared.plans, prepared.job.experiment, writer, progress);
    TokenClock clock(prepared.prompts);
    std::optional<std::pair<size_t, engine::Stopwatch>> begun;
    experiment.on_begun = [&](int prompt) {
        const auto next = static_cast<size_t>(prompt);
        require_prompt_within_limit(prepared, model, writer, next);
        if (begun) clock.finish(begun->first, begun->second.seconds());
        begun.emplace(next, engine::Stopwatch());
        const double seconds_left = clock.seconds_left(next, [](size_t) { return false; });
        if (events.on_prompt_begun) events.on_prompt_begun(prompt, seconds_left);
    };
    if (events.on_begin) events.on_begin(experiment);
    std::optional<RowsOnly> rows_only;
    if (prepared.job.experiment.stores_only_rows()) {
        rows_only.emplace(prepared, writer, warn);
        experiment.is_skipped = [&](int prompt) { return rows_only->has_rows(prompt); };
        experiment.on_finished = [&](const std::vector<int>& prompts) { rows_only->replace(prompts); };
    }
    const auto on_run = std::move(experiment.on_run);
    experiment.on_run = [&](int prompt, int number, const trace::RunRecord& record) {
        failures.report(prompt, number, prepared.prompts[static_cast<size_t>(prompt)].name, record);
        if (on_run) on_run(prompt, number, record);
    };
    try {
        experiment.run(prepared.prompts);
    } catch (...) {
        if (events.on_end) events.on_end(experiment);
        throw;
    }
    if (events.on_end) events.on_end(experiment);
    if (prepared.job.experiment.analyze && !prepared.job.experiment.stores_only_rows() && !writer.extends())
        write_model(writer, model, true, progress);
    return experiment.timings();
}

}  // namespace

RunOutcome run_job(const PreparedJob& prepared, const engine::Model& model, engine::Progress& progress,
                   const RunEvents& events) {
    const auto& [job, prompts, samples, plans, left_out, n_prompts_there, n_plans_there, n_continued, recipe, options] =
        prepared;
    const Warn warn = [&](const std::string& text) {
        events.on_warning ? events.on_warning(text) : progress.message(text);
    };
    if (events.on_prompts) events.on_prompts(prompts);
    for (const std::string& reason : left_out) warn(left_out_warning(job, reason));
    for (const auto& remark :
         engine::remarks_on_tokens(model, prompts, job.experiment.parse_special, progress.stop_token()))
        warn(remark);
    if (job.profile) {
        write_profile(prepared, model, progress, events);
        return {};
    }
    const bool only_rows = job.task || job.experiment.stores_only_rows();
    bool is_begun = false;  // whether the trace is new
    FailedRuns failures(prepared, warn);
    try {
        trace::Writer writer(job.output, recipe, options);
        is_begun = !writer.resumed();
        if (only_rows ? n_prompts_there > 0 : writer.extends())
            progress.message(fmt::format("extending {} from {} with {} each to {} with {} each", job.output.string(),
                                         counted(static_cast<int64_t>(n_prompts_there), job.task ? "sample" : "prompt"),
                                         counted(static_cast<int64_t>(n_plans_there), "run"),
                                         counted(std::ssize(prompts), job.task ? "sample" : "prompt"),
                                         counted(std::ssize(plans), "run")));
        if (writer.resumed())
            progress.message(fmt::format(
                "resuming {}{}", job.output.string(),
                n_continued == 0 ? ""
                : n_continued == 1
                    ? "; one run that an earlier command began is finished, too"
                    : fmt::format("; {} runs that an earlier command began are finished, too", n_continued)));
        for (const auto& damaged : writer.set_aside()) warn(damaged);
        if (!writer.has_model()) write_model(writer, model, false, progress);
        engine::Timings timings;
        if (job.task)
            answer_samples(prepared, model, writer, progress, events, failures);
        else
            timings = answer_prompts(prepared, model, writer, progress, events, failures, warn);
        if (!only_rows) write_rows_of_prompts(prepared, writer, progress, warn);
        writer.finish();
        progress.message(fmt::format("{} written", job.output.string()));
        return {false, failures.report_all(trace::Reader(job.output)), left_out.size(), timings};
    } catch (const trace::AlreadyComplete&) {
        progress.message(job.output.string() + (job.task ? " already contains these results"
                                                         : " already contains all requested runs: nothing to do"));
        return {true, failures.report_all(trace::Reader(job.output)), left_out.size(), {}};
    } catch (const std::invalid_argument&) {
        if (is_begun) remove_part_folder_without_results(job.output);
        throw;
    }
}

}  // namespace kvscope::program
