#include "app/gui/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "analysis/run_style.h"

namespace kvscope::gui {

Document::Document(int id, const std::filesystem::path& path)
    : id_(id), path_(path), file_(std::make_shared<const trace::Reader>(path)), reader_(file_) {}

void Document::reload() {
    file_ = std::make_shared<const trace::Reader>(path_);
    ++file_version_;
    reader_ = with_runs(memory_);
}

Document::MemoryRun Document::in_memory(trace::RunRecord run, int id, int source) {
    return {std::make_shared<const trace::RunRecord>(std::move(run)), ++run_version_, id, source};
}

void Document::set_pending_runs(int prompt_index, std::vector<trace::RunRecord> runs) {
    auto all = memory_;
    auto& pending = all[prompt_index].pending;
    pending.clear();
    for (auto& run : runs) pending.push_back(in_memory(std::move(run), -1, -1));
    replace(std::move(all));
}

int Document::add_run(int prompt_index, trace::RunRecord run, int source) {
    auto all = memory_;
    all[prompt_index].added.push_back(in_memory(std::move(run), next_id_, source));
    replace(std::move(all));
    return next_id_++;
}

void Document::replace_run(int id, trace::RunRecord run) {
    auto all = memory_;
    for (auto& [prompt_index, runs] : all) {
        for (auto& added : runs.added) {
            if (added.id != id) continue;
            MemoryRun changed = in_memory(std::move(run), id, added.source);
            changed.kept = added.kept;
            changed.unknown_json = added.unknown_json;
            added = std::move(changed);
            return replace(std::move(all));
        }
    }
    throw std::out_of_range(fmt::format("there is no what-if {}", id));
}

void Document::remove_run(int id) {
    auto all = memory_;
    for (auto& [prompt_index, runs] : all) {
        std::erase_if(runs.added, [&](const MemoryRun& run) {
            if (run.id == id && run.kept) annotations_changed = true;
            return run.id == id;
        });
    }
    replace(std::move(all));
}

void Document::keep_run(int id, const std::string& unknown_json) {
    for (auto& [prompt_index, runs] : memory_) {
        for (MemoryRun& added : runs.added) {
            if (added.id != id || added.kept || !file_->is_in_file(prompt_index, added.source)) continue;
            added.kept = annotations_changed = true;
            added.unknown_json = unknown_json;
        }
    }
}

std::vector<KeptWhatIf> Document::kept_what_ifs() const {
    std::vector<KeptWhatIf> all = saved_what_ifs;
    for (const auto& [prompt_index, runs] : memory_) {
        for (const MemoryRun& added : runs.added) {
            if (!added.kept) continue;
            all.push_back({prompt_index, file_->run_number(prompt_index, added.source),
                           analysis::run_label(file_->run(prompt_index, added.source)), added.record->parameters_json,
                           added.record->budget, false, added.unknown_json});
        }
    }
    return all;
}

int Document::run_of(int id) const {
    for (const auto& [prompt_index, runs] : memory_) {
        for (size_t i = 0; i < runs.added.size(); ++i) {
            if (runs.added[i].id == id) return first_added_run(prompt_index) + static_cast<int>(i);
        }
    }
    return -1;
}

int Document::prompt_of(int id) const {
    for (const auto& [prompt_index, runs] : memory_) {
        for (const MemoryRun& added : runs.added)
            if (added.id == id) return prompt_index;
    }
    return -1;
}

int Document::added_id(int prompt_index, int run) const {
    const int at = run - first_added_run(prompt_index);
    const auto found = memory_.find(prompt_index);
    if (at < 0 || found == memory_.end() || static_cast<size_t>(at) >= found->second.added.size()) return -1;
    return found->second.added[static_cast<size_t>(at)].id;
}

std::vector<int> Document::shown_order(int prompt_index) const {
    const int first_added = first_added_run(prompt_index);
    const auto found = memory_.find(prompt_index);
    const std::vector<MemoryRun> none;
    const auto& added = found == memory_.end() ? none : found->second.added;
    std::vector<int> order;
    for (int run = 0; run < first_added; ++run) {
        order.push_back(run);
        for (size_t i = 0; i < added.size(); ++i) {
            if (added[i].source == run) order.push_back(first_added + static_cast<int>(i));
        }
    }
    return order;
}

int Document::first_added_run(int prompt_index) const {
    const auto found = memory_.find(prompt_index);
    return file_->n_runs(prompt_index) + (found == memory_.end() ? 0 : static_cast<int>(found->second.pending.size()));
}

std::shared_ptr<const trace::Reader> Document::with_runs(const std::map<int, MemoryRuns>& runs) const {
    auto reader = file_;
    for (const auto& [prompt_index, of_prompt] : runs) {
        if (prompt_index >= file_->n_prompts()) continue;
        for (const auto* list : {&of_prompt.pending, &of_prompt.added}) {
            for (const auto& run : *list)
                reader = std::make_shared<const trace::Reader>(reader->with_run(prompt_index, *run.record));
        }
    }
    return reader;
}

void Document::replace(std::map<int, MemoryRuns> runs) {
    reader_ = with_runs(runs);
    memory_ = std::move(runs);
}

const Note* Document::note_on(int64_t first_token, int64_t last_token) const {
    for (const Note& note : notes) {
        if (note.prompt == prompt && note.first_token == first_token && note.last_token == last_token) return &note;
    }
    return nullptr;
}

void Document::write_note(int64_t first_token, int64_t last_token, const std::string& text) {
    const Note* old = note_on(first_token, last_token);
    if (text == (old ? old->text : std::string())) return;
    const std::string unknown_json = old ? old->unknown_json : std::string();
    if (old) notes.erase(notes.begin() + (old - notes.data()));
    if (!text.empty()) notes.push_back({prompt, first_token, last_token, text, unknown_json});
    std::sort(notes.begin(), notes.end(), [](const Note& x, const Note& y) {
        return std::tie(x.prompt, x.first_token, x.last_token) < std::tie(y.prompt, y.first_token, y.last_token);
    });
    annotations_changed = true;
}

void Document::toggle_pin(int64_t token) {
    auto& pinned = pins[prompt];
    if (!pinned.erase(token)) pinned.insert(token);
    annotations_changed = true;
}

void Document::set_further_answers(std::vector<FurtherAnswer> answers) {
    for (FurtherAnswer& answer : answers) answer.id = next_answer_++;
    further_answers_ = std::move(answers);
}

void Document::remove_further_answer(int id) {
    std::erase_if(further_answers_, [&](const FurtherAnswer& answer) { return answer.id == id; });
    annotations_changed = true;
}

int Document::add_further_answer(int prompt_index, int run, const std::string& question) {
    FurtherAnswer answer;
    answer.id = next_answer_++;
    answer.prompt = prompt_index;
    if (reader_->is_in_file(prompt_index, run)) answer.run_number = reader_->run_number(prompt_index, run);
    answer.run = analysis::run_label(reader_->run(prompt_index, run));
    answer.question = question;
    further_answers_.push_back(std::move(answer));
    return further_answers_.back().id;
}

FurtherAnswer* Document::further_answer(int id) {
    const auto found = std::find_if(further_answers_.begin(), further_answers_.end(),
                                    [&](const auto& answer) { return answer.id == id; });
    return found == further_answers_.end() ? nullptr : &*found;
}

int Document::run_called(int prompt_index, int run_number, const std::string& label) const {
    if (prompt_index < 0 || prompt_index >= reader_->n_prompts()) return -1;
    for (int run = 0; run < reader_->n_runs(prompt_index); ++run) {
        const int number = reader_->is_in_file(prompt_index, run) ? reader_->run_number(prompt_index, run) : -1;
        if (number == run_number && analysis::run_label(reader_->run(prompt_index, run)) == label) return run;
    }
    return -1;
}

std::string Document::stamp() const { return fmt::format("{}.{}", id_, file_version_); }

std::string Document::run_stamp(int prompt_index, int run) const {
    const int in_file = file_->n_runs(prompt_index);
    const auto found = memory_.find(prompt_index);
    if (run < in_file || found == memory_.end()) return stamp();
    const auto& runs = found->second;
    const auto at = static_cast<size_t>(run - in_file);
    const size_t n_pending = runs.pending.size();
    if (at >= n_pending + runs.added.size()) return stamp();
    return fmt::format("{}+{}", stamp(), (at < n_pending ? runs.pending[at] : runs.added[at - n_pending]).version);
}

}  // namespace kvscope::gui
