#include "app/gui/engine_session.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/gui/engine/job_progress.h"
#include "app/gui/engine/live_prefill.h"
#include "app/gui/engine/question_job.h"
#include "app/gui/engine/run_caches.h"
#include "app/gui/engine/run_in_window.h"
#include "app/gui/engine/token_counter.h"
#include "app/gui/run_form.h"
#include "app/gui/session.h"
#include "app/program/engine/run_job.h"
#include "app/program/paths.h"
#include "engine/conversation.h"
#include "engine/device.h"
#include "engine/error.h"
#include "engine/repeat.h"
#include "engine/spectra.h"
#include "kernels/types.h"
#include "trace/kept_spectra.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;

using ModelPtr = std::shared_ptr<const engine::Model>;

constexpr size_t most_prefills = 2;
constexpr uintmax_t small_model_bytes = 4'000'000'000;
/// The engine's thread and those that it starts leave the processor to the window first.
constexpr int niceness = 5;

uintmax_t bytes_of(const fs::path& path) {
    std::error_code error;
    if (!fs::is_directory(path, error)) return fs::file_size(path, error);
    uintmax_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(path, error)) {
        if (entry.is_regular_file(error)) bytes += entry.file_size(error);
    }
    return bytes;
}

/// Whether the trace that was begun at an output, or is there, has spectra: a job that goes on there has to hold what
/// was begun, whatever spectra cost by now. nullopt where there is none.
/// @param replaced what is complete there does not count
std::optional<bool> has_spectra(const fs::path& output, bool replaced) {
    std::vector<fs::path> places = {output.string() + ".part"};
    if (!replaced) places.push_back(output);
    for (const fs::path& path : places) {
        try {
            const auto recipe = nlohmann::json::parse(trace::Reader(path).recipe_json());
            return recipe.value("analyze", false);
        } catch (const std::exception&) {
            continue;  // not there, or no trace: the writer says so
        }
    }
    return std::nullopt;
}

/// What policies see of a prompt.
std::vector<int32_t> visible_ids(const engine::Prompt& prompt) {
    return {prompt.ids.begin(), prompt.ids.begin() + prompt.n_visible()};
}

class ThreadedSession final : public EngineSession {
 public:
    ThreadedSession(Session& session, std::function<void(const std::string&, bool)> notice, std::function<void()> wake,
                    std::function<std::vector<fs::path>()> known_models)
        : session_(session),
          notice_(std::move(notice)),
          wake_(std::move(wake)),
          known_models_(std::move(known_models)),
          progress_(wake_),
          counter_(wake_),
          thread_([this] { work(); }) {}

    ~ThreadedSession() override {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
            jobs_.clear();
        }
        progress_.cancel();
        changed_.notify_all();
        thread_.join();
    }

    void run(const RunRequest& request) override {
        program::RunJob job;
        job.model = request.model;
        job.prompts.push_back({request.name, request.context, {}});
        job.prompts.back().questions = request.asked_questions();
        job.query_aware = request.query_aware;
        job.use_template = request.use_template;
        job.policies = request.policies;
        job.budgets = {request.budgets};
        const RunOptions& options = request.options;
        job.experiment.n_new = request.n_new;
        job.experiment.sampling = {options.temperature, options.top_p, options.sampling_seed};
        job.experiment.seed = options.seed;
        job.experiment.isolated = options.isolated;
        job.experiment.ignore_eos = options.ignore_eos;
        job.experiment.window = options.window;
        job.force = request.force;
        job.output = request.output;
        if (job.output.empty()) {
            std::error_code error;
            const bool goes_on =
                begun_ && begun_->request == request && fs::exists(begun_->output.string() + ".part", error);
            job.output = goes_on ? begun_->output : new_output();
            begun_ = Begun{request, job.output};
        }
        start_run(job, request.spectra, options.dtype);
    }

    void run_demo() override {
        const fs::path output = fs::path("kvscope-demo") / "demo.h5";
        std::error_code error;
        if (fs::exists(output, error)) {
            try {
                if (trace::Reader(output).complete()) {
                    session_.open(output);
                    wake_();
                    return;
                }
            } catch (const std::exception& failure) {
                return notice_(failure.what(), true);
            }
        }
        fs::create_directories(output.parent_path(), error);
        if (error) return notice_(output.parent_path().string() + " cannot be made here: " + error.message(), true);
        try {
            auto job = program::demo_job(output);
            job.model = program::default_model();
            start_run(job, job.analyze, "auto");
        } catch (const std::exception& failure) {
            notice_(failure.what(), true);
        }
    }

    void load_model(const fs::path& path) override {
        begun_.reset();  // the next run may be another model's
        enqueue(path.empty() ? "the default model" : path.filename().string(),
                [this, path] { choose_model(path.empty() ? program::default_model() : path, "auto"); });
    }

    void repeat_prefill(int document, int prompt, const fs::path& path) override {
        const Document* of = session_.document(document);
        if (!of || prompt >= of->reader()->n_prompts()) return;
        const auto reader = of->file();
        enqueue(fmt::format("{}: prefill", of->name()),
                [this, document, prompt, path, reader, places = known_models_()] {
                    need_model_of(reader->model(), path.empty() ? places : std::vector{path});
                    progress_.go_on(EngineStatus::State::running,
                                    fmt::format("{}: prefill", reader->path().filename().string()));
                    const auto tokens = engine::stored_prompt(*model_, *reader, prompt, 0);
                    keep(document, prompt, read_prompt(*model_, tokens, reader->prompt(prompt).window, progress_));
                });
    }

    void compute_spectra(int document) override {
        const Document* of = session_.document(document);
        if (!of || !of->reader()->has_model()) return;
        enqueue(fmt::format("{}: spectra of {}", of->name(), of->reader()->model().name),
                [this, reader = of->file(), places = known_models_()] {
                    const auto& wanted = reader->model();
                    trace::ModelRecord record;
                    if (model_ && model_->fingerprint() == wanted.fingerprint) {
                        engine::add_spectra(model_->checkpoint(), wanted.fingerprint, record, progress_);
                    } else {
                        const auto checkpoint = checkpoint::open_checkpoint(place_of(wanted, places));
                        progress_.go_on(EngineStatus::State::running, fmt::format("spectra of {}", wanted.name));
                        engine::add_spectra(*checkpoint, wanted.fingerprint, record, progress_);
                    }
                    if (!trace::has_kept_spectra(wanted))
                        throw std::runtime_error(fmt::format(
                            "the spectra of {} cannot be kept in the cache folder (~/.cache/kvscope/spectra, or below "
                            "$XDG_CACHE_HOME): make it writable",
                            wanted.name));
                    tell_spectra();
                    post([this, fingerprint = wanted.fingerprint] { show_spectra(fingerprint); });
                });
    }

    void cancel() override {
        std::deque<Job> dropped;
        {
            const std::lock_guard lock(mutex_);
            dropped.swap(jobs_);
        }
        progress_.cancel();
        for (const Job& job : dropped)
            if (job.on_dropped) job.on_dropped();
    }

    EngineStatus status() const override {
        EngineStatus now = progress_.status();
        const std::lock_guard lock(mutex_);
        if (!now.busy() && !jobs_.empty()) now.state = EngineStatus::State::loading;
        return now;
    }

    const std::vector<PartialAnswer>& partial_answers() const override { return partial_; }

    std::optional<TokenCount> count_tokens(const RunRequest& request) override {
        if (request.context.empty()) return std::nullopt;
        if (!model_for_counts_ && !tried_to_load_ && !status().busy()) {
            tried_to_load_ = true;
            try {
                const fs::path path = request.model.empty() ? program::default_model() : request.model;
                if (bytes_of(path) <= small_model_bytes) load_model(path);
            } catch (const std::exception& error) {
                notice_(error.what(), true);
            }
        }
        return counter_.ask(request, model_for_counts_);
    }

    std::shared_ptr<const PrefillInMemory> prefill(int document, int prompt) const override {
        for (const auto& kept : prefills_) {
            if (kept.document == document && has(kept.prompts, prompt)) return kept.prefill;
        }
        return nullptr;
    }

    std::string obstacle_to_asking(const RunKey& run) const override {
        if (!session_.exists(run)) return "select a run";
        const Document& document = *session_.document(run);
        const trace::Reader& reader = *document.reader();
        const trace::RunAttributes& attributes = reader.run(run.prompt, run.run);
        if (attributes.status != "complete") return attributes.label + " failed: it has no cache";
        const bool is_pending = !reader.is_in_file(run.prompt, run.run) && !is_what_if(document, run);
        if (is_pending && running_ && running_->document() == document.id())
            return attributes.label + " is still being decoded";
        return {};
    }

    bool has_cache(const RunKey& run) const override { return caches_.find(session_, run) != nullptr; }

    void ask(const std::vector<RunKey>& runs, const std::string& question) override {
        std::map<std::pair<int, int>, QuestionJob> by_prompt;
        for (const RunKey& run : runs) {
            if (!obstacle_to_asking(run).empty()) continue;
            Document& document = *session_.document(run);
            QuestionJob& job = by_prompt[{run.document, run.prompt}];
            job.document = run.document;
            job.prompt = run.prompt;
            job.reader = document.reader();
            job.question = question;
            job.runs.push_back({run.run, document.add_further_answer(run.prompt, run.run, question),
                                RunCaches::name_of(document, run), caches_.find(session_, run)});
        }
        for (auto& [place, job] : by_prompt) enqueue_question(std::move(job));
    }

    void decode(const std::vector<RunKey>& what_ifs) override {
        std::map<std::pair<int, int>, std::vector<WhatIfRun>> by_prompt;
        for (const RunKey& run : what_ifs) {
            if (!session_.exists(run) || !is_what_if(*session_.document(run), run)) continue;
            const Document& document = *session_.document(run);
            by_prompt[{run.document, run.prompt}].push_back(
                {run.run, document.added_id(run.prompt, run.run), RunCaches::name_of(document, run)});
        }
        for (const auto& [place, runs] : by_prompt) enqueue_decoding(place.first, place.second, runs);
    }

    void update() override {
        std::deque<std::function<void()>> arrived;
        {
            const std::lock_guard lock(mutex_);
            arrived.swap(arrived_);
        }
        for (const auto& act : arrived) act();
        if (running_) {
            running_->update(session_);
            partial_ = running_->partial_answers();
        }
        std::erase_if(prefills_, [&](const Kept& kept) { return !session_.document(kept.document); });
        caches_.drop_closed(session_);
    }

 private:
    struct Kept {
        int document;
        std::vector<int> prompts;  ///< that share the context
        std::shared_ptr<const PrefillInMemory> prefill;
    };
    struct WhatIfRun {
        int run;
        int added;         ///< Document::added_id
        std::string name;  ///< RunCaches::name_of
    };
    struct Begun {
        RunRequest request;
        fs::path output;
    };
    struct Job {
        std::string what;
        std::function<void()> run;
        std::function<void()> on_dropped;  ///< the window's thread; may be empty
    };

    // ---- the window's thread ---------------------------------------------------------------------------------------

    void enqueue(std::string what, std::function<void()> run, std::function<void()> on_dropped = nullptr) {
        {
            const std::lock_guard lock(mutex_);
            jobs_.push_back({std::move(what), std::move(run), std::move(on_dropped)});
        }
        changed_.notify_all();
    }

    /// @param spectra unset: where they cost little
    void start_run(program::RunJob job, std::optional<bool> spectra, const std::string& dtype) {
        std::vector<engine::RunPlan> plans;
        try {
            plans = program::plans_of(job);
        } catch (const std::exception& error) {
            return notice_(error.what(), true);
        }
        job.experiment.keep_prefill = !job.experiment.isolated;
        job.experiment.keep_caches = !job.experiment.isolated;
        const std::string what = fmt::format("{}: {} runs", job.output.filename().string(), plans.size());
        const auto run = std::make_shared<RunInWindow>(job.output, notice_);
        enqueue(what,
                [this, job, spectra, dtype, plans, run, what] { execute(job, spectra, dtype, plans, run, what); });
    }

    static bool is_what_if(const Document& document, const RunKey& run) {
        return document.added_id(run.prompt, run.run) >= 0;
    }

    /// @param change what becomes of the answer, where it is still there
    void change_answer(int document, int answer, const std::function<void(FurtherAnswer&)>& change) {
        Document* of = session_.document(document);
        FurtherAnswer* to = of ? of->further_answer(answer) : nullptr;
        if (!to) return;
        change(*to);
        if (to->finished) of->annotations_changed = true;
    }

    /// A what-if that was made as a run, unless its settings have changed since.
    void take_decoded(int document, const WhatIfRun& what_if, trace::RunRecord record) {
        Document* of = session_.document(document);
        const int run = of ? of->run_of(what_if.added) : -1;
        if (run < 0) return;
        const int prompt = of->prompt_of(what_if.added);
        if (RunCaches::name_of(*of, {document, prompt, run}) != what_if.name) return;
        const auto cache = caches_.find(session_, {document, prompt, run});
        record.label = of->reader()->run(prompt, run).label;
        try {
            of->replace_run(what_if.added, std::move(record));
        } catch (const std::exception& error) {
            return notice_(error.what(), true);
        }
        if (cache) caches_.keep(document, prompt, RunCaches::name_of(*of, {document, prompt, run}), cache);
    }

    void enqueue_question(QuestionJob question) {
        const auto job = std::make_shared<QuestionJob>(std::move(question));
        const int document = job->document;
        enqueue(
            fmt::format("{}: a further question", session_.document(document)->name()),
            [this, job, document, places = known_models_()] {
                QuestionEvents events;
                events.on_change = [this, document](int id, auto change) {
                    post([this, document, id, change] { change_answer(document, id, change); });
                };
                events.on_made_again = [this, job](const QuestionJob::Asked& asked, const engine::RepeatedRun& again) {
                    if (!again.cache) return;
                    post([this, job, name = asked.name, cache = again.cache] {
                        caches_.keep(job->document, job->prompt, name, cache);
                    });
                };
                try {
                    need_model_of(job->reader->model(), places);
                } catch (const std::exception& error) {
                    end_all(*job, events, error.what());
                    throw;
                }
                progress_.go_on(EngineStatus::State::running,
                                fmt::format("{}: a further question", job->reader->path().filename().string()));
                answer(*job, *model_, progress_, events);
            },
            [this, job, document] {
                for (const auto& asked : job->runs) {
                    change_answer(document, asked.answer, [](FurtherAnswer& to) {
                        to.error = "stopped";
                        to.finished = true;
                    });
                }
            });
    }

    void enqueue_decoding(int document, int prompt, const std::vector<WhatIfRun>& what_ifs) {
        const Document& of = *session_.document(document);
        const std::string what = fmt::format("{}: what-if", of.name());
        enqueue(what, [this, document, prompt, what_ifs, what, reader = of.reader(), places = known_models_()] {
            need_model_of(reader->model(), places);
            progress_.go_on(EngineStatus::State::running, what);
            std::vector<int> runs;
            for (const auto& what_if : what_ifs) runs.push_back(what_if.run);
            std::vector<std::vector<int32_t>> ids(runs.size());
            auto repeated =
                engine::repeat_runs(*model_, *reader, prompt, runs, true, progress_, [&](size_t i, int32_t id) {
                    ids[i].push_back(id);
                    post([this, label = reader->run(prompt, runs[i]).label, text = model_->answer_text(ids[i])] {
                        set_partial(label, text);
                    });
                });
            for (size_t i = 0; i < runs.size(); ++i) {
                if (!repeated[i].cache) throw std::runtime_error(repeated[i].record.message);
                post([this, document, prompt, what_if = what_ifs[i], again = repeated[i]] {
                    caches_.keep(document, prompt, what_if.name, again.cache);
                    take_decoded(document, what_if, again.record);
                    partial_.clear();
                });
            }
        });
    }

    void set_partial(const std::string& label, const std::string& text) {
        const auto found = std::find_if(partial_.begin(), partial_.end(),
                                        [&](const PartialAnswer& partial) { return partial.label == label; });
        if (found != partial_.end())
            found->text = text;
        else
            partial_.push_back({label, {}, text});
    }

    static bool has(const std::vector<int>& prompts, int prompt) {
        return std::find(prompts.begin(), prompts.end(), prompt) != prompts.end();
    }

    /// Figures of these traces are made anew.
    void show_spectra(const std::string& fingerprint) {
        for (const auto& document : session_.documents()) {
            if (!document->reader()->has_model() || document->reader()->model().fingerprint != fingerprint) continue;
            try {
                document->reload();
            } catch (const std::exception& error) {
                notice_(error.what(), true);
            }
        }
    }

    // ---- the engine's thread ---------------------------------------------------------------------------------------

    void post(std::function<void()> act) {
        {
            const std::lock_guard lock(mutex_);
            arrived_.push_back(std::move(act));
        }
        wake_();
    }

    void work() {
        setpriority(PRIO_PROCESS, 0, niceness);
        for (;;) {
            Job job;
            {
                std::unique_lock lock(mutex_);
                changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
                if (stopping_) return;
                job = std::move(jobs_.front());
                jobs_.pop_front();
                progress_.start(job.what);
            }
            std::string failure;
            try {
                job.run();
            } catch (const engine::Cancelled&) {
                post([this] { notice_("stopped", false); });
            } catch (const std::bad_alloc&) {
                failure = job.what + ": out of memory: use a shorter prompt or fewer runs at once";
            } catch (const std::exception& error) {
                failure = error.what();
            }
            if (!failure.empty()) post([this, failure] { notice_(failure, true); });
            progress_.end(failure);
        }
    }

    void need_model(const fs::path& path, const std::string& dtype) {
        if (model_ && model_path_ == path && (dtype == "auto" || model_->attributes().dtype == dtype)) return;
        progress_.go_on(EngineStatus::State::loading, path.filename().string());
        const auto model =
            std::make_shared<const engine::Model>(engine::Model::open(path, engine::dtype_from_name(dtype), progress_));
        model_ = model;
        model_path_ = path;
        progress_.set_model(model->attributes().name, path, model->transformer().config().context_length);
        tell_spectra();
        post([this, model] { model_for_counts_ = model; });
    }

    /// What a person chose: where it cannot be loaded, the next run is not made on another one.
    void choose_model(const fs::path& path, const std::string& dtype) {
        try {
            refused_model_ = path;
            need_model(path, dtype);
            refused_model_.clear();
            progress_.set_model_error("");
        } catch (const engine::Cancelled&) {
            progress_.set_model_error(path.filename().string() + " is not loaded: that was cancelled");
            throw;
        } catch (const std::exception& error) {
            progress_.set_model_error(error.what());
            throw;
        }
    }

    /// What the loaded model's spectra would cost now.
    void tell_spectra() {
        if (model_)
            progress_.set_spectra_seconds(
                engine::spectra_seconds(model_->transformer().config(), model_->fingerprint()));
    }

    /// Where the model that a trace was made with is. @throws std::runtime_error where it is in none of the places
    static fs::path place_of(const trace::ModelAttributes& wanted, std::vector<fs::path> places) {
        try {
            places.push_back(program::default_model());
        } catch (const std::exception&) {
            // There is none: it may be in another place.
        }
        for (const auto& place : places) {
            try {
                if (checkpoint::open_checkpoint(place)->fingerprint() == wanted.fingerprint) return place;
            } catch (const std::exception&) {
                continue;  // moved since, or damaged: not the one
            }
        }
        throw std::runtime_error(
            fmt::format("the trace was made with {}, which is neither loaded, nor the default model, nor among the "
                        "recent ones: load that model first",
                        wanted.name));
    }

    /// Loads the model that a trace was made with, in the trace's type.
    void need_model_of(const trace::ModelAttributes& wanted, const std::vector<fs::path>& places) {
        const bool is_same = model_ && model_->fingerprint() == wanted.fingerprint;
        if (is_same && model_->attributes().dtype == wanted.dtype) return;
        const bool is_type = wanted.dtype == "f32" || wanted.dtype == "bf16";
        need_model(is_same ? model_path_ : place_of(wanted, places), is_type ? wanted.dtype : "auto");
    }

    void keep(int document, int prompt, std::shared_ptr<const engine::LivePrefill> live) {
        const auto kept = prefill_in_memory(std::move(live), [this] { return progress_.status().busy(); });
        post([this, document, prompt, kept] { remember(document, {prompt}, kept); });
    }

    void remember(int document, const std::vector<int>& prompts,
                  const std::shared_ptr<const PrefillInMemory>& prefill) {
        for (Kept& kept : prefills_) {
            if (kept.document == document) std::erase_if(kept.prompts, [&](int of) { return has(prompts, of); });
        }
        std::erase_if(prefills_, [](const Kept& kept) { return kept.prompts.empty(); });
        prefills_.insert(prefills_.begin(), {document, prompts, prefill});
        if (prefills_.size() > most_prefills) prefills_.resize(most_prefills);
    }

    void execute(program::RunJob job, std::optional<bool> spectra, const std::string& dtype,
                 const std::vector<engine::RunPlan>& plans, const std::shared_ptr<RunInWindow>& run,
                 const std::string& what) {
        fs::path path = job.model.empty() ? refused_model_ : job.model;
        if (path.empty()) path = model_ ? model_path_ : program::default_model();
        choose_model(path, kernels::name_of(engine::dtype_from_name(dtype)));
        progress_.go_on(EngineStatus::State::running, what);
        if (!spectra) spectra = has_spectra(job.output, job.force);
        job.analyze = spectra.value_or(engine::spectra_seconds(model_->transformer().config(), model_->fingerprint()) <=
                                       little_for_spectra_seconds);
        std::vector<std::vector<int32_t>> contexts;
        program::RunEvents events;
        events.on_prompts = [&](std::span<const engine::Prompt> prompts) {
            std::transform(prompts.begin(), prompts.end(), std::back_inserter(contexts), visible_ids);
            post([this, run] {
                running_ = run;
                caches_.clear();  // they make room; what is asked again is made again
            });
        };
        events.on_begin = [&](engine::Experiment& experiment) {
            run->attach(
                experiment, model_, [this](auto act) { post(std::move(act)); }, session_);
        };
        events.on_end = [&](engine::Experiment& experiment) {
            const std::shared_ptr<const engine::LivePrefill> live = experiment.take_prefill();
            std::vector<std::shared_ptr<engine::Conversation>> caches;
            for (auto& cache : experiment.take_caches()) caches.push_back(std::move(cache));
            if (!live) return;
            std::vector<int> prompts;
            for (size_t i = 0; i < contexts.size(); ++i) {
                if (std::ranges::equal(contexts[i], live->token_ids())) prompts.push_back(static_cast<int>(i));
            }
            const auto kept = prefill_in_memory(live, [this] { return progress_.status().busy(); });
            post([this, run, kept, caches, prompts] {
                if (run->document() < 0) return;
                remember(run->document(), prompts, kept);
                if (!caches.empty()) caches_.keep_job(run->document(), prompts, caches);
            });
        };
        try {
            program::run(job, plans, *model_, progress_, events);
        } catch (...) {
            post([this, run] {
                run->stop(session_);
                running_.reset();
                partial_.clear();
            });
            throw;
        }
        tell_spectra();
        post([this, run] {
            run->finish(session_);
            running_.reset();
            partial_.clear();
        });
    }

    Session& session_;
    std::function<void(const std::string&, bool)> notice_;
    std::function<void()> wake_;
    std::function<std::vector<fs::path>()> known_models_;
    JobProgress progress_;
    TokenCounter counter_;

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Job> jobs_;
    std::deque<std::function<void()>> arrived_;
    bool stopping_ = false;

    // The engine's thread alone.
    ModelPtr model_;
    fs::path model_path_;
    fs::path refused_model_;  ///< chosen last, and not to be loaded; empty: none

    // The window's thread alone.
    ModelPtr model_for_counts_;
    std::optional<Begun> begun_;  ///< the last run into a file that was not named
    bool tried_to_load_ = false;
    std::shared_ptr<RunInWindow> running_;
    std::vector<PartialAnswer> partial_;
    std::vector<Kept> prefills_;  ///< newest first
    RunCaches caches_;

    std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace

std::unique_ptr<EngineSession> make_engine_session(Session& session,
                                                   std::function<void(const std::string&, bool is_error)> notice,
                                                   std::function<void()> wake,
                                                   std::function<std::vector<fs::path>()> known_models) {
    return std::make_unique<ThreadedSession>(session, std::move(notice), std::move(wake), std::move(known_models));
}

}  // namespace kvscope::gui
