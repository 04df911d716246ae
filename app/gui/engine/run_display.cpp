#include "app/gui/engine/run_display.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "analysis/tables/table_format.h"
#include "app/gui/session/session.h"
#include "app/gui/session/unfinished_answers.h"
#include "common/stopped.h"
#include "trace/part_folder.h"

namespace kvscope::gui {

RunDisplay::RunDisplay(std::filesystem::path output, bool of_task, Notice notice, std::function<void()> before_step)
    : output_(std::move(output)), of_task_(of_task), notice_(std::move(notice)), before_step_(std::move(before_step)) {}

void RunDisplay::attach(engine::Experiment& experiment, std::shared_ptr<const engine::Model> model,
                        const engine::Progress& progress, const std::function<void(std::function<void()>)>& post,
                        Session& session) {
    model_ = std::move(model);
    experiment.on_prompt = [this, self = shared_from_this(), post, &session](int prompt,
                                                                             const trace::PromptRecord& record) {
        {
            const std::lock_guard lock(mutex_);
            questions_[prompt] = record.question;
            answer(prompt);
        }
        post([self, prompt, &session] { self->open(session, prompt); });
    };
    experiment.on_kept = [this, self = shared_from_this()](int prompt, int run, const trace::RunRecord& record) {
        const std::lock_guard lock(mutex_);
        answer(prompt);
        const auto at = static_cast<size_t>(run);
        if (labels_in_engine_.size() <= at) labels_in_engine_.resize(at + 1);
        labels_in_engine_[at] = record.label;
        arrived_.push_back({prompt, run, record});
    };
    experiment.on_run = [this, self = shared_from_this()](int prompt, int run, const trace::RunRecord& record) {
        const std::lock_guard lock(mutex_);
        if (prompt == answered_) end_answer(run);  // a failed run has no on_answered event
        arrived_.push_back({prompt, run, record});
    };
    experiment.on_token = [this, self = shared_from_this(), &progress](int run, int32_t id) {
        {
            const std::lock_guard lock(mutex_);
            const auto at = static_cast<size_t>(run);
            if (answers_.size() <= at) answers_.resize(at + 1);
            answers_[at].push_back(id);
        }
        store_answers_in_time(progress.stop_token());
    };
    experiment.on_answered = [this, self = shared_from_this()](int run) {
        const std::lock_guard lock(mutex_);
        end_answer(run);
    };
    experiment.ask_switch = [this, self = shared_from_this()](int run, bool is_full) {
        if (before_step_) before_step_();
        const std::lock_guard lock(mutex_);
        const bool asked = to_switch_.erase(run) > 0;
        is_full_[run] = is_full != asked;
        return asked;
    };
}

void RunDisplay::store_answers_in_time(const std::stop_token& stop) {
    using std::chrono::seconds, std::chrono::steady_clock;
    constexpr int least_share = 20;  // storing delays decoding, so it takes at most 1/20 of the time
    const auto begin = steady_clock::now();
    if (begin < store_next_at_) return;
    store_answers(stop);
    const auto end = steady_clock::now();
    store_next_at_ = end + std::max<steady_clock::duration>(seconds(1), least_share * (end - begin));
}

void RunDisplay::store_answers(const std::stop_token& stop) {
    std::vector<UnfinishedAnswer> answers;
    std::vector<std::vector<int32_t>> tokens;
    {
        const std::lock_guard lock(mutex_);
        tokens = answers_;
        for (size_t run = 0; run < tokens.size(); ++run) {
            const int number = static_cast<int>(run);
            const std::string label = run < labels_in_engine_.size() ? labels_in_engine_[run] : "";
            answers.push_back(
                {answered_, number, label, "", static_cast<int64_t>(tokens[run].size()), ended_.contains(number)});
        }
    }
    if (!model_) return;
    try {
        for (size_t run = 0; run < tokens.size(); ++run) answers[run].text = model_->answer_text(tokens[run], stop);
        std::erase_if(answers, [](const UnfinishedAnswer& answer) { return answer.n_tokens == 0; });
        if (answers.empty()) return;
        write_unfinished_answers(output_, answers);
    } catch (const Stopped&) {               // no error: the next call of this function writes the answers
    } catch (const std::exception& error) {  // e.g. a full disk; the run reports its own write errors
        spdlog::debug("{}", error.what());
    }
}

void RunDisplay::answer(int prompt) {
    if (std::exchange(answered_, prompt) == prompt) return;
    answers_.clear();
    is_full_.clear();
    to_switch_.clear();
    ended_.clear();
}

void RunDisplay::end_answer(int run) {
    ended_.insert(run);
    to_switch_.erase(run);
}

void RunDisplay::open(Session& session, int prompt) {
    try {
        if (document_ < 0) document_ = session.open(output_, true).id();
        const Document* document = session.document(document_);
        if (document && document->file()->n_prompts() <= prompt) show(session, true);
    } catch (const std::exception& error) {
        notice_(error.what(), true);
    }
}

void RunDisplay::update(Session& session) {
    const Document* document = session.document(document_);
    if (!document) return;
    std::vector<Arrived> arrived;
    {
        const std::lock_guard lock(mutex_);
        arrived.swap(arrived_);
    }
    if (arrived.empty()) return;
    for (auto& [prompt, run, record] : arrived) {
        const auto at = static_cast<size_t>(run);
        if (labels_.size() <= at) labels_.resize(at + 1);
        labels_[at] = record.label;
        waiting_[prompt][run] = std::move(record);
    }
    try {
        show(session, waiting_.rbegin()->first >= document->file()->n_prompts());
    } catch (const std::exception& error) {
        notice_(error.what(), true);
    }
}

void RunDisplay::show(Session& session, bool reload) {
    Document& document = *session.document(document_);
    if (reload) document.reload();
    for (auto& [prompt, records] : std::exchange(waiting_, {})) document.set_pending_runs(prompt, std::move(records));
    if (session.cursor().run.document != document_) select_first(session);
}

void RunDisplay::select_first(Session& session) {
    const Document& document = *session.document(document_);
    if (document.prompt >= document.reader()->n_prompts()) return;
    for (const RunId run : document.runs(document.prompt)) {
        const RunKey key{document_, document.prompt, run};
        const auto& attributes = session.attributes(key);
        if (document.is_what_if(run) || attributes.is_full() || attributes.status == "failed") continue;
        session.selection.select_run(key);
        selected_ = session.cursor();
        return;
    }
}

void RunDisplay::show_one_budget(Session& session, Document& document) const {
    const Cursor now = session.cursor();
    const size_t n_hidden = session.show_one_budget(document, now == selected_ ? RunKey{} : now.run);
    if (n_hidden > 0)
        notice_(
            fmt::format(
                "{}: only the runs with the largest budget that drops entries are shown. Runs lists the {} other runs, "
                "and key 0 shows all runs",
                document.name(), n_hidden),
            false);
}

void RunDisplay::show_scores(Session& session, bool is_finished) {
    if (!is_finished) {
        size_t n_samples = 0;
        const auto folder = trace::part_folder_of(output_);
        std::error_code error;
        if (std::filesystem::exists(folder, error))
            for (const auto& [task, samples] : trace::list_parts(folder).results) n_samples += samples.size();
        if (std::exchange(n_shown_samples_, n_samples) == n_samples) return;
    }
    document_ = session.open(output_, !is_finished).id();
    session.wanted_view = "task_scores";
}

void RunDisplay::finish(Session& session) {
    update(session);
    try {
        if (of_task_) {
            show_scores(session, true);
        } else if (document_ < 0) {
            document_ = session.open(output_).id();
        } else if (Document* document = session.document(document_)) {
            show(session, true);
            show_one_budget(session, *document);
        }
    } catch (const std::exception& error) {
        notice_(error.what(), true);
    }
}

void RunDisplay::stop(Session& session) {
    update(session);
    if (!of_task_ && !session.document(document_)) return;
    try {
        of_task_ ? show_scores(session, false) : keep_partial_answers(session);
    } catch (const std::exception& error) {
        notice_(error.what(), true);
    }
}

void RunDisplay::end_early(Session& session) {
    stop(session);
    if (!session.document(document_)) return;
    notice_(
        fmt::format(
            "{}.part contains the finished part. Start the same run again to continue.{}", output_.string(),
            of_task_ ? ""
                     : " Until you close the trace, the app still shows the kept tokens of runs that the file lacks."),
        false);
}

void RunDisplay::go_on(Session& session) {
    Document* document = session.document(document_);
    for (auto& [prompt, records] : std::exchange(partly_answered_, {}))
        if (document) document->set_pending_runs(prompt, std::move(records));
}

RunKey RunDisplay::key_of_answered(const Session& session, size_t run) const {
    const Document* document = session.document(document_);
    if (!document || answered_ >= document->reader()->n_prompts() || run >= labels_.size()) return {};
    const auto id = document->run_called(answered_, static_cast<int>(run), labels_[run]);
    return id ? RunKey{document_, answered_, *id} : RunKey{};
}

void RunDisplay::keep_partial_answers(Session& session) {
    const std::lock_guard lock(mutex_);
    std::map<int, trace::RunRecord> records;
    for (size_t run = 0; run < answers_.size(); ++run) {
        const RunKey key = key_of_answered(session, run);
        if (answers_[run].empty() || !session.exists(key) || !session.document(key)->is_pending(key.run)) continue;
        const RunAt at = session.at(key);
        trace::RunRecord record = at.reader->run_record(at.prompt, at.run);
        if (!record.output_ids.empty()) continue;  // the answer is complete
        partly_answered_[answered_][static_cast<int>(run)] = record;
        record.output_ids = answers_[run];
        record.output_text = model_->answer_text(answers_[run]);
        if (!ended_.contains(static_cast<int>(run)))
            record.message = fmt::format("cancelled: {} tokens of its answer were decoded",
                                         analysis::format_count(static_cast<int64_t>(answers_[run].size())));
        records[static_cast<int>(run)] = std::move(record);
    }
    if (!records.empty()) session.document(document_)->set_pending_runs(answered_, std::move(records));
}

std::vector<PartialAnswer> RunDisplay::partial_answers(Session& session) {
    const std::lock_guard lock(mutex_);
    const auto question = questions_.find(answered_);
    std::vector<PartialAnswer> answers;
    for (size_t run = 0; run < answers_.size(); ++run) {
        const std::vector<int32_t>& tokens = answers_[run];
        if (tokens.empty() || run >= labels_.size()) continue;
        const auto text = session.tasks.ask(texts_, fmt::format("{}/{}", answered_, run), std::to_string(tokens.size()),
                                            [model = model_, tokens] { return model->answer_text(tokens); });
        auto& answer = answers.emplace_back();
        answer.run = static_cast<int>(run);
        answer.key = key_of_answered(session, run);
        answer.label = labels_[run];
        if (question != questions_.end()) answer.question = question->second;
        if (text.value)
            answer.text = *text.value;
        else
            answer.text = text.error;
        if (const auto found = is_full_.find(answer.run); found != is_full_.end())
            answer.is_full = found->second != to_switch_.contains(answer.run);
        answer.has_ended = ended_.contains(answer.run);
    }
    return answers;
}

void RunDisplay::switch_cache(int run) {
    const std::lock_guard lock(mutex_);
    if (!is_full_.contains(run) || ended_.contains(run)) return;
    if (!to_switch_.insert(run).second) to_switch_.erase(run);
}

}  // namespace kvscope::gui
