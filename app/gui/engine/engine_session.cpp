#include "app/gui/session/engine_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "analysis/runs/run_style.h"
#include "app/gui/engine/answer_jobs.h"
#include "app/gui/engine/job_progress.h"
#include "app/gui/engine/job_queue.h"
#include "app/gui/engine/jobs_to_run.h"
#include "app/gui/engine/loaded_model.h"
#include "app/gui/engine/pausable_progress.h"
#include "app/gui/engine/prefills_in_memory.h"
#include "app/gui/engine/run_caches.h"
#include "app/gui/engine/run_display.h"
#include "app/gui/engine/run_output_files.h"
#include "app/gui/engine/token_counter.h"
#include "app/gui/engine/training_display.h"
#include "app/gui/session/session.h"
#include "app/gui/session/whole_path.h"
#include "app/gui/view_data/run_form.h"
#include "app/program/engine/prepared_job.h"
#include "app/program/input_files.h"
#include "common/json.h"
#include "common/stopped.h"
#include "common/whole_file.h"
#include "engine/common/memory.h"
#include "engine/decode/conversation.h"
#include "engine/rerun_recorded_runs.h"
#include "kernels/types.h"
#include "trace/part_folder.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;

class ThreadedSession final : public EngineSession {
 public:
    ThreadedSession(Session& session, Notice notice, std::function<void()> wake,
                    std::function<std::vector<fs::path>()> known_models, int n_threads,
                    std::function<void()> before_step)
        : session_(session),
          notice_(std::move(notice)),
          wake_(std::move(wake)),
          known_models_(std::move(known_models)),
          before_step_(std::move(before_step)),
          counter_(wake_),
          model_(
              progress_,
              [this](const auto& model) {
                  end_paused_runs();  // paused runs hold the previous model in memory
                  jobs_.post([this, model] {
                      model_for_counts_ = model;
                      caches_.clear();
                  });
              },
              [this](const std::string& text) { post_notice(text); }),
          jobs_(progress_, notice_, wake_, n_threads) {}

    uint64_t run(const RunRequest& request) override {
        program::RunJob job = make_run_job(request);
        const RunRequest named = naming_its_model(request);
        if (job.output.empty()) job.output = outputs_.place_for(named);
        if (is_paused_at(job.output) && stopped_->request == named) return continue_stopped_run();
        const auto read_prompts = [this, request](program::RunJob& of) {
            if (request.task) return;
            auto [prompts, problems] = find_prompts(request);
            if (prompts.empty() && !problems.empty()) throw std::invalid_argument(problems.front());
            for (const std::string& problem : problems) post_notice(problem + ". It is left out");
            of.prompts = std::move(prompts);
        };
        return start_run(job, request.spectra, read_prompts, named);
    }

    fs::path continued_output(const RunRequest& request) const override {
        return outputs_.continued_output(naming_its_model(request));
    }

    uint64_t run_sample(int document, const SampleRun& run) override {
        const Document* const of = session_.document(document);
        if (!of) return 0;
        uint64_t number = 0;
        jobs_.attempt([&] {
            program::RunJob job = make_sample_job(*of->file(), run);
            if (is_paused_at(job.output)) {
                number = continue_stopped_run();
                return;
            }
            const auto find_model = [model = of->file()->model(), places = known_models_()](program::RunJob& one) {
                one.model = find_model_path(model, places);
            };
            number = start_run(std::move(job), std::nullopt, find_model, std::nullopt);
        });
        return number;
    }

    uint64_t go_on(const fs::path& path) override {
        const fs::path output = path.extension() == ".part" ? fs::path(path).replace_extension() : path;
        if (outputs_.is_taken(output)) {
            notice_(fmt::format("{} is already being written", output.filename().string()), false);
            return 0;
        }
        if (is_paused_at(output)) return continue_stopped_run();
        uint64_t job = 0;
        jobs_.attempt([&] {
            const UnfinishedRun unfinished = read_unfinished_run(output);
            const auto find_model = [model = unfinished.model, places = known_models_()](program::RunJob& of) {
                of.model = find_model_path(model, places);
            };
            job = start_run(unfinished.job, std::nullopt, unfinished.plans, find_model, std::nullopt);
        });
        return job;
    }

    void run_demo() override {
        jobs_.attempt([this] {
            const fs::path output = fs::path("kvscope-demo") / "demo.h5";
            std::error_code error;
            if (fs::exists(output, error) && trace::Reader(output).complete()) {
                session_.open(output);
                return wake_();
            }
            fs::create_directories(output.parent_path(), error);
            if (error)
                throw std::runtime_error(output.parent_path().string() + " cannot be created here: " + error.message());
            auto job = program::demo_job(output);
            job.model = program::default_model();
            start_run(job, job.experiment.analyze, nullptr, std::nullopt);
        });
    }

    void load_model(const fs::path& path) override {
        outputs_.forget_begun();  // the next run may use another model
        if (stopped_) stopped_->request.reset();
        jobs_.enqueue(path.empty() ? "the default model" : path.filename().string(),
                      [this, path] { model_.choose(path.empty() ? program::default_model() : path); });
    }

    void repeat_prefill(int document, int prompt, const fs::path& path) override {
        const Document* of = session_.document(document);
        if (!of || prompt >= of->reader()->n_prompts()) return;
        const auto reader = of->file();
        jobs_.enqueue(
            fmt::format("{}: prefill", of->name()), [this, document, prompt, path, reader, places = known_models_()] {
                model_.need(*reader, path.empty() ? places : std::vector{path});
                progress_.go_on(EngineStatus::State::running,
                                fmt::format("{}: prefill", reader->path().filename().string()));
                const auto tokens =
                    engine::read_prompt_from_trace(*model_.get(), *reader, prompt, 0, progress_.stop_token());
                keep(document, prompt,
                     compute_prefill_observations(*model_.get(), tokens, reader->prompt(prompt).window, progress_));
            });
    }

    void compute_spectra(int document) override {
        const Document* of = session_.document(document);
        if (!of || !of->reader()->has_model()) return;
        jobs_.enqueue(fmt::format("{}: spectra of {}", of->name(), of->reader()->model().name),
                      [this, reader = of->file(), places = known_models_()] {
                          model_.compute_spectra(reader->model(), places);
                          jobs_.post([this, fingerprint = reader->model().fingerprint] { show_spectra(fingerprint); });
                      });
    }

    void look_for_devices() override {
        if (!device_search_.joinable()) device_search_ = std::jthread([this] { report_devices(progress_); });
    }

    void cancel() override { jobs_.cancel(); }

    bool has_job(uint64_t job) const override { return jobs_.has(job); }

    std::vector<WaitingJob> waiting() const override { return jobs_.waiting(); }

    void drop(uint64_t job) override { jobs_.drop(job); }

    bool is_taken(const fs::path& output) const override { return outputs_.is_taken(output); }

    std::optional<StoppedRun> stopped_run() const override {
        return stopped_ ? std::optional(stopped_->run) : std::nullopt;
    }

    uint64_t continue_stopped_run() override {
        const auto stopped = std::exchange(stopped_, std::nullopt);
        if (!stopped) return 0;
        if (stopped->paused_job == 0) return stopped->start();
        stopped->taken->is_paused = false;
        const auto pause_again = [this, stopped] {
            stopped->taken->is_paused = true;
            set_stopped(*stopped);
        };
        const bool goes_on = jobs_.go_on(stopped->paused_job, pause_again, [stopped] { stopped->start(); });
        return goes_on ? stopped->paused_job : stopped->start();
    }

    EngineStatus status() const override { return jobs_.status(); }

    std::string error_of(uint64_t job) const override { return jobs_.error_of(job); }

    const std::vector<PartialAnswer>& partial_answers() const override { return partial_; }

    void train(const TrainingRequest& request) override {
        outputs_.forget_begun();
        training_.begin(request);
        const auto path = status().model_path;
        const std::string what = fmt::format("{}: training", request.output.filename().string());
        jobs_.enqueue(what, [this, request, path, what] {
            try {
                if (!request.force) refuse_existing(request.output);
                model_.choose(path.empty() ? program::default_model() : path);
                const auto model = model_.get();
                progress_.go_on(EngineStatus::State::running, what);
                training_.run(*model, request, progress_, [this](auto act) { jobs_.post(std::move(act)); });
            } catch (const Stopped&) {
                throw;
            } catch (const std::exception& error) {
                jobs_.post([this, why = std::string(error.what())] { training_.fail(why); });
                throw;
            }
        });
    }

    const TrainingStatus& training() const override { return training_.status(); }

    void switch_cache(int run) override {
        if (running_) running_->switch_cache(run);
    }

    std::optional<TokenCount> count_tokens(const RunRequest& request) override {
        if (request.context.empty() && request.sources.empty()) return std::nullopt;
        if (!model_for_counts_ && !tried_to_load_ && !status().busy()) {
            tried_to_load_ = true;
            jobs_.attempt([&] {
                const fs::path path = request.model.empty() ? program::default_model() : request.model;
                if (is_small_model(path)) load_model(path);
            });
        }
        return counter_.ask(request, model_for_counts_);
    }

    TaskResult<PromptSource> read_source(const fs::path& source) override {
        return session_.tasks.ask(sources_, source.string(), stamp_of_file(source),
                                  [source] { return read_prompt_source(source); });
    }

    std::shared_ptr<const PrefillInMemory> prefill(int document, int prompt) const override {
        return prefills_.find(document, prompt);
    }

    std::string obstacle_to_asking(const RunKey& run) const override {
        if (!session_.exists(run)) return "select a run";
        const Document& document = *session_.document(run);
        const trace::RunAttributes& attributes = session_.attributes(run);
        if (stopped_ && stopped_->paused_job != 0 && document.is_pending(run.run))
            return analysis::run_label(attributes) + " belongs to a paused run: continue that run first";
        if (attributes.status != "complete") return analysis::run_label(attributes) + " failed: it has no cache";
        if (document.is_pending(run.run) && running_ && running_->document() == document.id()) {
            const auto& answers = partial_answers();
            const bool has_answered = std::ranges::any_of(
                answers, [&](const PartialAnswer& answer) { return answer.key == run && answer.has_ended; });
            return analysis::run_label(attributes) +
                   (has_answered ? " can be asked once its job has ended" : " is still being decoded");
        }
        return {};
    }

    bool has_cache(const RunKey& run) const override { return caches_.find(session_, run) != nullptr; }

    void ask(const std::vector<RunKey>& runs, const std::string& question) override {
        std::vector<RunKey> asked = runs;
        std::erase_if(asked, [&](const RunKey& run) { return !obstacle_to_asking(run).empty(); });
        for (QuestionJob& job : question_jobs(session_, asked, question, caches_)) enqueue_question(std::move(job));
    }

    void decode(const std::vector<RunKey>& what_ifs) override {
        for (const DecodingJob& job : decoding_jobs(session_, what_ifs))
            enqueue_decoding(session_.document(job.what_ifs.front().key)->name(), job);
    }

    void update() override {
        jobs_.deliver();
        if (running_) {
            running_->update(session_);
            partial_ = running_->partial_answers(session_);
        }
        prefills_.drop_closed(session_);
        caches_.drop_closed(session_);
    }

 private:
    struct StoppedJob {
        StoppedRun run;
        fs::path output;
        std::optional<RunRequest> request{};  ///< the request of the run
        std::shared_ptr<RunOutput> taken;     ///< set if the job is paused
        std::function<uint64_t()> start{};    ///< starts the run again; finished runs on disk are not repeated
        uint64_t paused_job = 0;              ///< job that holds the run's data in memory; 0: none
    };

    /// Sets the members of a job that need a search on disk, such as its prompts. Called on the engine's thread.
    using CompleteJob = std::function<void(program::RunJob&)>;

    // Called on the UI thread:

    /// @param complete may be empty
    uint64_t start_run(program::RunJob job, std::optional<bool> spectra, const CompleteJob& complete,
                       const std::optional<RunRequest>& request) {
        std::vector<engine::RunPlan> plans;
        if (!jobs_.attempt([&] { plans = program::run_plans_of_job(job); })) return 0;
        return start_run(std::move(job), spectra, plans, complete, request);
    }

    uint64_t start_run(program::RunJob job, std::optional<bool> spectra, const std::vector<engine::RunPlan>& plans,
                       const CompleteJob& complete, const std::optional<RunRequest>& request) {
        if (stopped_ && stopped_->output == normal(job.output)) forget_stopped();
        job.experiment.keep_prefill = !job.experiment.isolated && !job.task && !job.experiment.stores_only_rows();
        job.experiment.keep_caches = job.experiment.keep_prefill;
        const std::string of = job.task                               ? " per sample of " + job.task->name
                               : request && !request->sources.empty() ? " per prompt"
                                                                      : "";
        const std::string what = fmt::format("{}: {} runs{}", job.output.filename().string(), plans.size(), of);
        const auto run = std::make_shared<RunDisplay>(job.output, job.task != nullptr, notice_, before_step_);
        const auto taken = outputs_.take(job.output);
        StoppedJob stopped{.run = {what, {}}, .output = normal(job.output), .request = request, .taken = taken};
        stopped.start = [this, job, spectra, plans, complete, request] {
            return start_run(job, spectra, plans, complete, request);
        };
        return jobs_.enqueue(what, [this, job, spectra, plans, run, stopped, complete]() mutable {
            if (complete) complete(job);
            PausableProgress progress(progress_, stopped.run.what,
                                      [&](const std::string& place) { return pause(run, stopped, place); });
            try {
                execute(job, spectra, plans, run, progress);
            } catch (const Stopped&) {
                if (!progress.has_ended()) {
                    stopped.run.rest = describe_kept_parts(job.output);
                    stopped.taken.reset();
                    jobs_.post([this, stopped] { set_stopped(stopped); });
                }
                throw;
            }
        });
    }

    /// Blocks until the run continues, see JobQueue::pause(). Called on the engine's thread.
    bool pause(const std::shared_ptr<RunDisplay>& run, StoppedJob stopped, const std::string& place) {
        stopped.run.rest = fmt::format("Nothing is repeated: the run continues where it stopped ({}).", place);
        run->store_answers(progress_.stop_token());  // in case the process is killed during the pause
        const bool goes_on = jobs_.pause([this, run, stopped](uint64_t job) mutable {
            stopped.taken->is_paused = true;
            run->stop(session_);
            running_.reset();
            partial_.clear();
            stopped.paused_job = job;
            set_stopped(stopped);
        });
        if (!goes_on) return false;
        jobs_.post([this, run] {
            run->go_on(session_);
            running_ = run;
        });
        return true;
    }

    void set_stopped(const StoppedJob& stopped) {
        forget_stopped();
        stopped_ = stopped;
    }

    /// Adds the model's path if it is missing, so that a request compares equal before and after the model is loaded.
    RunRequest naming_its_model(RunRequest request) const {
        if (request.model.empty()) request.model = status().model_path;
        try {
            if (request.model.empty()) request.model = program::default_model();
        } catch (const std::exception&) {  // there is no default model; the run reports this
        }
        return request;
    }

    static fs::path normal(const fs::path& output) { return absolute_path(output).lexically_normal(); }

    bool is_paused_at(const fs::path& output) const {
        return stopped_ && stopped_->paused_job != 0 && stopped_->output == normal(output);
    }

    void forget_stopped() {
        const auto before = std::exchange(stopped_, std::nullopt);
        if (before) jobs_.end_paused(before->paused_job);
    }

    /// Frees the memory of paused runs. Called on the engine's thread.
    void end_paused_runs() {
        jobs_.end_paused();
        jobs_.post([this] {
            if (stopped_ && std::exchange(stopped_->paused_job, 0) != 0)
                stopped_->run.rest = describe_kept_parts(stopped_->output);
        });
    }

    void take_decoded(const DecodingJob::WhatIf& what_if, trace::RunRecord record) {
        if (!session_.exists(what_if.key)) return;
        Document& of = *session_.document(what_if.key);
        if (RunCaches::name_of(of, what_if.key) != what_if.name) return;
        const auto cache = caches_.find(session_, what_if.key);
        record.label = session_.attributes(what_if.key).label;
        const bool is_replaced = jobs_.attempt([&] { of.replace_run(what_if.key.run, std::move(record)); });
        if (is_replaced && cache)
            caches_.keep(what_if.key.document, what_if.key.prompt, RunCaches::name_of(of, what_if.key), cache);
    }

    void enqueue_question(QuestionJob question) {
        const auto job = std::make_shared<QuestionJob>(std::move(question));
        const int document = job->document;
        jobs_.enqueue(
            fmt::format("{}: a further question", session_.document(document)->name()),
            [this, job, document, places = known_models_()] {
                QuestionEvents events;
                events.on_change = [this, document](int id, auto change) {
                    jobs_.post([this, document, id, change] { change_answer(session_, document, id, change); });
                };
                events.on_made_again = [this, job](const QuestionJob::Asked& asked, const engine::RepeatedRun& again) {
                    if (!again.cache) return;
                    jobs_.post(
                        [this, job, name = asked.name, cache = keep_model_with_cache(again.cache, model_.get())] {
                            caches_.keep(job->document, job->prompt, name, cache);
                        });
                };
                const auto model = [&]() -> const engine::Model& {
                    model_.need(*job->reader, places);
                    progress_.go_on(EngineStatus::State::running,
                                    fmt::format("{}: a further question", job->reader->path().filename().string()));
                    return *model_.get();
                };
                answer_question_job(*job, model, progress_, events);
            },
            [this, job, document] {
                finish_answers_with_error(
                    *job, [&](int id, const auto& change) { change_answer(session_, document, id, change); },
                    "stopped");
            });
    }

    void enqueue_decoding(const std::string& document, const DecodingJob& job) {
        const std::string what = fmt::format("{}: what-if", document);
        jobs_.enqueue(what, [this, job, what, places = known_models_()] {
            try {
                model_.need(*job.reader, places);
                progress_.go_on(EngineStatus::State::running, what);
                gui::decode_what_ifs(job, *model_.get(), progress_, decoding_events());
            } catch (...) {
                jobs_.post([this] { partial_.clear(); });
                throw;
            }
        });
    }

    void set_partial(const RunKey& key, const std::string& label, const std::string& text) {
        const auto found =
            std::ranges::find_if(partial_, [&](const PartialAnswer& partial) { return partial.key == key; });
        if (found != partial_.end())
            found->text = text;
        else
            partial_.push_back({.key = key, .label = label, .text = text});
    }

    void show_spectra(const std::string& fingerprint) {
        for (const auto& document : session_.documents()) {
            if (!document->reader()->has_model() || document->reader()->model().fingerprint != fingerprint) continue;
            jobs_.attempt([&] { session_.open(document->path()); });
        }
    }

    // Called on the engine's thread:

    void post_notice(const std::string& text) {
        jobs_.post([this, text] { notice_(text, false); });
    }

    DecodingEvents decoding_events() {
        DecodingEvents events;
        events.on_text = [this](const auto& what_if, const std::string& label, const std::string& text) {
            jobs_.post([this, key = what_if.key, label, text] { set_partial(key, label, text); });
        };
        events.on_decoded = [this](const auto& what_if, const engine::RepeatedRun& again) {
            jobs_.post(
                [this, what_if, record = again.record, cache = keep_model_with_cache(again.cache, model_.get())] {
                    caches_.keep(what_if.key.document, what_if.key.prompt, what_if.name, cache);
                    take_decoded(what_if, record);
                    partial_.clear();
                });
        };
        return events;
    }

    /// Returns a function that tells whether a job is running. The function may outlive this object.
    std::function<bool()> is_busy() const {
        return [progress = shared_progress_] { return progress->status().busy(); };
    }

    void keep(int document, int prompt, std::shared_ptr<const engine::PrefillObservations> live) {
        const auto kept = make_prefill_in_memory(std::move(live), is_busy());
        jobs_.post([this, document, prompt, kept] { prefills_.keep(document, {prompt}, kept); });
    }

    void execute(program::RunJob job, std::optional<bool> spectra, const std::vector<engine::RunPlan>& plans,
                 const std::shared_ptr<RunDisplay>& run, PausableProgress& progress) {
        model_.choose(job.model, &job.experiment);
        const auto model = model_.get();
        progress_.go_on(EngineStatus::State::running, progress.what());
        constexpr uint64_t enough_memory = uint64_t{4} << 30;
        const bool is_memory_short = engine::available_memory().bytes.value_or(enough_memory) < enough_memory;
        if (job.experiment.isolated || is_memory_short) end_paused_runs();  // isolated runs measure memory
        if (!spectra) spectra = recorded_choice_of_spectra(job.output, job.force);
        job.experiment.analyze = !job.task && !job.experiment.stores_only_rows() &&
                                 spectra.value_or(model_.spectra_seconds() <= little_for_spectra_seconds);
        SampleProgress of_samples(progress, progress_);
        std::vector<std::vector<int32_t>> contexts;
        size_t n_prompts = 0;
        program::RunEvents events;
        const auto allow_pauses = [&] {
            if (!job.experiment.isolated)  // isolated runs are measured without pauses
                progress.allow([model] { model->transformer().backend().wait(); });
        };
        events.on_prompts = [&](std::span<const engine::Prompt> prompts) {
            n_prompts = prompts.size();
            if (job.task) allow_pauses();
            for (const engine::Prompt& prompt : prompts)
                if (!job.task) contexts.emplace_back(prompt.ids.begin(), prompt.ids.begin() + prompt.n_visible());
            jobs_.post([this, run] {
                running_ = run;
                caches_.clear();  // frees memory; caches are rebuilt when needed
            });
        };
        events.on_begin = [&](engine::Experiment& experiment) {
            allow_pauses();
            if (job.experiment.stores_only_rows()) return;  // the data of finished prompts are removed during the job
            run->attach(
                experiment, model, progress, [this](auto act) { jobs_.post(std::move(act)); }, session_);
        };
        events.on_sample = [&](size_t, std::span<const trace::ResultRow>, double, double seconds_left) {
            of_samples.set_seconds_left(seconds_left);
        };
        events.on_prompt_begun = [&](int prompt, double seconds_left) {
            if (n_prompts > 1) progress.begin_part(fmt::format("prompt {}/{}", prompt + 1, n_prompts), seconds_left);
        };
        events.on_warning = [this](const std::string& text) { post_notice(text); };
        events.on_end = [&](engine::Experiment& experiment) {
            progress.forbid();
            if (progress.has_ended()) return;  // the memory of an ended run should be freed
            const std::shared_ptr<const engine::PrefillObservations> live = experiment.take_prefill();
            std::vector<std::shared_ptr<engine::Conversation>> caches;
            for (auto& cache : experiment.take_caches())
                caches.push_back(keep_model_with_cache(std::move(cache), model));
            if (!live) return;
            std::vector<int> prompts;
            for (size_t i = 0; i < contexts.size(); ++i)
                if (std::ranges::equal(contexts[i], live->token_ids())) prompts.push_back(static_cast<int>(i));
            const auto kept = make_prefill_in_memory(live, is_busy());
            jobs_.post([this, run, kept, caches, prompts] {
                if (run->document() < 0) return;
                prefills_.keep(run->document(), prompts, kept);
                if (!caches.empty()) caches_.keep_job(run->document(), prompts, caches);
            });
        };
        bool was_complete = false;
        try {
            const program::PreparedJob prepared = program::prepare_job(job, plans, *model, progress.stop_token());
            if (job.task) program::check_job(prepared, *model);  // without a task, the experiment checks its prompts
            events.on_sample_begun = [&](size_t sample) { of_samples.show(sample, prepared.samples.size()); };
            engine::Progress& of_job = job.task ? static_cast<engine::Progress&>(of_samples) : progress;
            was_complete = program::run_job(prepared, *model, of_job, events).was_complete;
        } catch (...) {
            run->store_answers(progress.stop_token());
            if (progress.stop_token().stop_requested()) program::remove_part_folder_without_prompts(job.output);
            jobs_.post([this, run] {
                run->end_early(session_);
                if (running_ != run) return;  // this run was paused, and another run is shown
                running_.reset();
                partial_.clear();
            });
            throw;
        }
        model_.tell_spectra();
        jobs_.post([this, run, was_complete, name = job.output.filename().string()] {
            run->finish(session_);
            running_.reset();
            partial_.clear();
            notice_(name + (was_complete ? " already contains these runs: nothing was run"
                                         : " is complete: the run has ended"),
                    false);
        });
    }

    Session& session_;
    Notice notice_;
    std::function<void()> wake_;
    std::function<std::vector<fs::path>()> known_models_;
    std::function<void()> before_step_;
    /// Prefills share this pointer, because a worker may still compute a what-if after this session is destroyed.
    std::shared_ptr<JobProgress> shared_progress_ = std::make_shared<JobProgress>(wake_);
    JobProgress& progress_ = *shared_progress_;
    TokenCounter counter_;

    LoadedModel model_;  ///< engine's thread only

    // Used on the UI thread only:
    LoadedModel::Pointer model_for_counts_;
    RunOutputs outputs_;
    std::optional<StoppedJob> stopped_;
    TaskSlot<PromptSource> sources_;
    bool tried_to_load_ = false;
    std::shared_ptr<RunDisplay> running_;
    std::vector<PartialAnswer> partial_;
    TrainingDisplay training_;
    KeptPrefills prefills_;
    RunCaches caches_;

    std::jthread device_search_;  ///< not a job, because drivers start slowly

    JobQueue jobs_;  ///< last member, because its thread uses the others
};

}  // namespace

std::unique_ptr<EngineSession> make_engine_session(Session& session, Notice notice, std::function<void()> wake,
                                                   std::function<std::vector<fs::path>()> known_models, int n_threads,
                                                   std::function<void()> before_step) {
    return std::make_unique<ThreadedSession>(session, std::move(notice), std::move(wake), std::move(known_models),
                                             n_threads, std::move(before_step));
}

}  // namespace kvscope::gui
