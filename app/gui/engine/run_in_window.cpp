#include "app/gui/engine/run_in_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/gui/session.h"

namespace kvscope::gui {

RunInWindow::RunInWindow(std::filesystem::path output, std::function<void(const std::string&, bool)> notice)
    : output_(std::move(output)), notice_(std::move(notice)) {}

void RunInWindow::attach(engine::Experiment& experiment, std::shared_ptr<const engine::Model> model,
                         const std::function<void(std::function<void()>)>& post, Session& session) {
    model_ = std::move(model);
    experiment.on_prompt = [this, post, &session](int, const trace::PromptRecord&) {
        post([this, &session] { open(session); });
    };
    experiment.on_kept = [this](int, int run, const trace::RunRecord& record) {
        const std::lock_guard lock(mutex_);
        arrived_.emplace_back(run, record);
    };
    experiment.on_run = [this](int, int run, const trace::RunRecord& record) {
        const std::lock_guard lock(mutex_);
        arrived_.emplace_back(run, record);
    };
    experiment.on_token = [this](int run, int32_t id) {
        const std::lock_guard lock(mutex_);
        const auto at = static_cast<size_t>(run);
        if (answers_.size() <= at) answers_.resize(at + 1);
        answers_[at].push_back(id);
    };
}

void RunInWindow::open(Session& session) {
    try {
        document_ = session.open(output_).id();
    } catch (const std::exception& error) {
        notice_(error.what(), true);
    }
}

void RunInWindow::update(Session& session) {
    if (!session.document(document_)) return;
    std::vector<std::pair<int, trace::RunRecord>> records;
    {
        const std::lock_guard lock(mutex_);
        records.swap(arrived_);
    }
    if (records.empty()) return;
    try {
        show(session, records);
    } catch (const std::exception& error) {
        notice_(error.what(), true);
    }
}

void RunInWindow::show(Session& session, const std::vector<std::pair<int, trace::RunRecord>>& records) {
    Document& document = *session.document(document_);
    const trace::Reader& file = *document.file();
    std::map<int, trace::RunRecord> pending;
    for (size_t i = 0; i < shown_.size(); ++i)
        pending[shown_[i]] = document.reader()->run_record(0, file.n_runs(0) + static_cast<int>(i));
    std::vector<int> in_file;
    for (int run = 0; run < file.n_runs(0); ++run) in_file.push_back(file.run_number(0, run));
    for (const auto& [number, record] : records) {
        const auto at = static_cast<size_t>(number);
        if (labels_.size() <= at) labels_.resize(at + 1);
        labels_[at] = record.label;
        if (std::find(in_file.begin(), in_file.end(), number) == in_file.end()) pending[number] = record;
    }
    std::vector<trace::RunRecord> runs;
    shown_.clear();
    for (auto& [number, record] : pending) {
        shown_.push_back(number);
        runs.push_back(std::move(record));
    }
    document.set_pending_runs(0, std::move(runs));
    if (session.cursor().run.document == document_) return;
    for (int run = 0; run < document.first_added_run(0); ++run) {
        const RunKey key{document_, 0, run};
        const auto& attributes = session.attributes(key);
        if (attributes.policy == "full" || attributes.status == "failed") continue;
        return session.select_run(key);
    }
}

void RunInWindow::read_again(Session& session) {
    Document* document = session.document(document_);
    if (!document) return;
    // Runs are numbered in the trace; where they stand among those that are there may change.
    const int n_prompt_runs = document->reader()->n_runs(0);
    const int first_added = document->first_added_run(0);
    std::vector<int> numbers;
    for (int run = 0; run < first_added; ++run) {
        const int in_file = document->file()->n_runs(0);
        numbers.push_back(run < in_file ? document->file()->run_number(0, run)
                                        : shown_[static_cast<size_t>(run - in_file)]);
    }
    document->reload();
    document->set_pending_runs(0, {});
    shown_.clear();
    std::vector<int> moved(static_cast<size_t>(n_prompt_runs), -1);
    for (int run = 0; run < n_prompt_runs; ++run) {
        if (run >= first_added) {
            moved[static_cast<size_t>(run)] = document->first_added_run(0) + run - first_added;
            continue;
        }
        for (int now = 0; now < document->file()->n_runs(0); ++now) {
            if (document->file()->run_number(0, now) == numbers[static_cast<size_t>(run)])
                moved[static_cast<size_t>(run)] = now;
        }
    }
    session.renumber_runs(document_, 0, moved);
    session.show_one_budget(*document);
}

void RunInWindow::finish(Session& session) {
    try {
        if (!session.document(document_)) {
            if (document_ < 0) document_ = session.open(output_).id();
            return;
        }
        read_again(session);
    } catch (const std::exception& error) {
        notice_(error.what(), true);
    }
}

void RunInWindow::stop(Session& session) {
    update(session);
    if (!session.document(document_)) return;
    notice_(fmt::format("what was finished is in {}.part, and the same run goes on from there; kept sets that were not "
                        "written stay in memory until the trace is closed",
                        output_.string()),
            false);
}

std::vector<PartialAnswer> RunInWindow::partial_answers() const {
    const std::lock_guard lock(mutex_);
    std::vector<PartialAnswer> answers;
    for (size_t run = 0; run < answers_.size(); ++run) {
        if (!answers_[run].empty() && run < labels_.size())
            answers.push_back({labels_[run], model_->answer_text(answers_[run])});
    }
    return answers;
}

}  // namespace kvscope::gui
