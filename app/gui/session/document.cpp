#include "app/gui/session/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "analysis/runs/run_style.h"
#include "analysis/runs/token_texts.h"
#include "common/json.h"
#include "trace/part_folder.h"
#include "trace/recipe.h"

namespace kvscope::gui {
namespace {

std::string answer_json(const trace::RunRecord& run) {
    if (run.output_text.empty() && run.output_ids.empty()) return {};
    const nlohmann::json answer = {{"text", run.output_text},
                                   {"ids", run.output_ids},
                                   {"step_kl", run.step_kl},
                                   {"step_agreement", run.step_agreement}};
    return answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Document::Document(int id, std::filesystem::path path, bool is_written)
    : id_(id), path_(std::move(path)), is_written_(is_written) {
    show(std::make_shared<const trace::Reader>(source()), {});
    follow_to_finished_file();
    if (file_->complete() || is_written) return;
    unfinished_answers_ = read_unfinished_answers(path_);
    std::erase_if(unfinished_answers_, [&](const UnfinishedAnswer& answer) {
        if (answer.prompt < 0 || answer.prompt >= file_->n_prompts()) return true;
        for (int run = 0; run < file_->n_runs(answer.prompt); ++run)
            if (file_->run_number(answer.prompt, run) == answer.run_number) return true;
        return false;
    });
}

std::filesystem::path Document::source() const {
    std::error_code error;
    const auto unfinished = trace::part_folder_of(path_);
    return is_written_ && std::filesystem::exists(unfinished, error) ? unfinished : path_;
}

void Document::reload() {
    const auto file = std::make_shared<const trace::Reader>(source());
    auto memory = memory_;
    for (auto& [prompt_index, runs] : memory) {
        if (prompt_index >= file->n_prompts()) continue;
        for (int run = 0; run < file->n_runs(prompt_index); ++run)
            runs.pending.erase(file->run_number(prompt_index, run));
    }
    show(file, std::move(memory));
    file_version_ = unique_id();
    follow_to_finished_file();
    prompt = std::clamp(prompt, 0, std::max(0, file_->n_prompts() - 1));
}

void Document::follow_to_finished_file() {
    if (is_written_ || !file_->complete() || path_ != trace::part_folder_of(file_->path())) return;
    path_ = file_->path();
    annotations_changed = annotations_changed || !annotations_in_file.empty();  // the file is named after the folder
    annotations_in_file.clear();
}

bool Document::has_text(const std::string& text) const {
    if (text.empty()) return false;
    if (searched_text_.text == text && searched_text_.file_version == file_version_) return searched_text_.is_there;
    bool is_there = false;
    for (int i = 0; i < file_->n_prompts() && !is_there; ++i) {
        try {
            is_there = !analysis::find_text(analysis::join_tokens_into_text(file_->token_text(i)), text).empty();
        } catch (const std::exception&) {
            continue;  // an unreadable prompt counts as one without the text
        }
    }
    searched_text_ = {text, file_version_, is_there};
    return is_there;
}

bool Document::is_of_another_trace() const {
    const trace::Reader now(source());
    if (now.recipe_json() != file_->recipe_json() &&
        !trace::can_extend_recipe_to(file_->recipe_json(), now.recipe_json()))  // the trace was not merely extended
        return true;
    for (int i = 0; i < std::min(now.n_prompts(), file_->n_prompts()); ++i) {
        const auto &before = file_->prompt(i), &after = now.prompt(i);
        const auto asked = [](const trace::PromptAttributes& of) {
            return std::tie(of.name, of.text, of.question, of.n_tokens, of.n_context, of.query_aware);
        };
        if (asked(before) != asked(after)) return true;
    }
    return false;
}

void Document::number_runs_of_file() {
    in_file_.clear();
    for (int prompt_index = 0; prompt_index < file_->n_prompts(); ++prompt_index)
        for (int run = 0; run < file_->n_runs(prompt_index); ++run)
            in_file_[prompt_index].push_back(
                numbered(prompt_index, file_->run_number(prompt_index, run), file_->run(prompt_index, run).label));
}

/// A run keeps its id while its number and label are the same. Otherwise, the file has become another trace.
RunId Document::numbered(int prompt_index, int number, const std::string& label) {
    Numbered& known = numbered_[{prompt_index, number}];
    if (!known.id.valid() || known.label != label) known = {label, RunId{next_id_++}};
    return known.id;
}

void Document::set_pending_runs(int prompt_index, std::map<int, trace::RunRecord> runs_by_number) {
    auto memory = memory_;
    for (int run = 0; prompt_index < file_->n_prompts() && run < file_->n_runs(prompt_index); ++run)
        runs_by_number.erase(file_->run_number(prompt_index, run));
    for (auto& [number, record] : runs_by_number) {
        const RunId id = numbered(prompt_index, number, record.label);
        memory[prompt_index].pending[number] = {
            .id = id, .record = std::make_shared<const trace::RunRecord>(std::move(record)), .version = ++run_version_};
    }
    show(file_, std::move(memory));
}

RunId Document::add_run(int prompt_index, trace::RunRecord run, RunId source) {
    run.given_label.clear();
    auto memory = memory_;
    const RunId id{next_id_++};
    memory[prompt_index].added.push_back({.id = id,
                                          .record = std::make_shared<const trace::RunRecord>(std::move(run)),
                                          .version = ++run_version_,
                                          .source = source});
    show(file_, std::move(memory));
    return id;
}

void Document::replace_run(RunId what_if, trace::RunRecord run) {
    auto memory = memory_;
    for (auto& [prompt_index, runs] : memory) {
        for (MemoryRun& added : runs.added) {
            if (added.id != what_if) continue;
            annotations_changed |= !answer_json(*added.record).empty() || !answer_json(run).empty();
            added.record = std::make_shared<const trace::RunRecord>(std::move(run));
            added.version = ++run_version_;
            return show(file_, std::move(memory));
        }
    }
    throw std::out_of_range("this what-if no longer exists");
}

void Document::remove_run(RunId what_if) {
    auto memory = memory_;
    for (auto& [prompt_index, runs] : memory) {
        std::erase_if(runs.added, [&](const MemoryRun& run) {
            if (run.id == what_if && (run.kept || !answer_json(*run.record).empty())) annotations_changed = true;
            return run.id == what_if;
        });
    }
    show(file_, std::move(memory));
}

void Document::keep_run(RunId what_if, const std::string& unknown_json) {
    for (auto& [prompt_index, runs] : memory_) {
        for (MemoryRun& added : runs.added) {
            if (added.id != what_if || added.kept || !number_of(prompt_index, added.source)) continue;
            added.kept = annotations_changed = true;
            added.unknown_json = unknown_json;
        }
    }
}

std::optional<std::pair<int, std::string>> Document::number_of(int prompt_index, RunId run) const {
    const auto at = place_of(prompt_index, run);
    if (!at || is_what_if(run)) return std::nullopt;
    const std::string label = analysis::recorded_or_default_label(reader_->run(prompt_index, *at));
    if (reader_->is_in_file(prompt_index, *at)) return std::pair{reader_->run_number(prompt_index, *at), label};
    for (const auto& [number, pending] : memory_.at(prompt_index).pending)
        if (pending.id == run) return std::pair{number, label};
    return std::nullopt;
}

std::optional<RunId> Document::like(int prompt_index, RunId run, int other_prompt) const {
    const RunId of = is_what_if(run) ? source_of(run) : run;
    const auto number = number_of(prompt_index, of);
    if (!number) return std::nullopt;
    const std::string& policy = reader_->run(prompt_index, place_of(prompt_index, of).value()).policy;
    for (const RunId other : runs(other_prompt)) {
        const auto its = number_of(other_prompt, other);
        if (!its || its->first != number->first) continue;
        const bool is_same = reader_->run(other_prompt, place_of(other_prompt, other).value()).policy == policy;
        return is_same ? std::optional(other) : std::nullopt;
    }
    return std::nullopt;
}

std::string Document::what_if_stamp(RunId what_if) const {
    const MemoryRun* in_memory = memory_run(what_if);
    return in_memory ? fmt::format("what-if {}+{}", what_if.number, in_memory->version) : "gone";
}

std::vector<KeptWhatIf> Document::kept_what_ifs() const {
    std::vector<KeptWhatIf> all = saved_what_ifs;
    for (const auto& [prompt_index, runs] : memory_) {
        for (const MemoryRun& added : runs.added) {
            std::string answer = answer_json(*added.record);
            const bool is_saved = added.kept || !answer.empty();
            const auto source = is_saved ? number_of(prompt_index, added.source) : std::nullopt;
            if (!source) continue;
            all.push_back({prompt_index, source->first, source->second, added.record->parameters_json,
                           added.record->budget, false, added.unknown_json, std::move(answer)});
        }
    }
    return all;
}

const Document::MemoryRun* Document::memory_run(RunId run) const {
    for (const auto& [prompt_index, runs] : memory_) {
        for (const auto& [number, pending] : runs.pending)
            if (pending.id == run) return &pending;
        for (const MemoryRun& added : runs.added)
            if (added.id == run) return &added;
    }
    return nullptr;
}

bool Document::is_what_if(RunId run) const {
    return std::ranges::any_of(memory_, [&](const auto& of_prompt) {
        const auto& added = of_prompt.second.added;
        return std::ranges::any_of(added, [&](const MemoryRun& each) { return each.id == run; });
    });
}

RunId Document::source_of(RunId run) const {
    const MemoryRun* in_memory = is_what_if(run) ? memory_run(run) : nullptr;
    return in_memory ? in_memory->source : RunId{};
}

bool Document::is_pending(RunId run) const { return memory_run(run) && !is_what_if(run); }

const std::vector<RunId>& Document::runs(int prompt_index) const {
    static const std::vector<RunId> none;
    const auto found = runs_.find(prompt_index);
    return found == runs_.end() ? none : found->second;
}

std::vector<RunKey> Document::keys(int prompt_index) const {
    std::vector<RunKey> all;
    for (const RunId run : runs(prompt_index)) all.push_back({id_, prompt_index, run});
    return all;
}

RunId Document::id_of(int prompt_index, int run) const {
    const auto& all = runs(prompt_index);
    if (run < 0 || static_cast<size_t>(run) >= all.size())
        throw std::out_of_range(fmt::format("{}: prompt {} has no run {}", path_.string(), prompt_index, run));
    return all[static_cast<size_t>(run)];
}

std::optional<int> Document::place_of(int prompt_index, RunId run) const {
    const auto& all = runs(prompt_index);
    const auto found = std::ranges::find(all, run);
    if (!run.valid() || found == all.end()) return std::nullopt;
    return static_cast<int>(found - all.begin());
}

std::vector<RunId> Document::shown_order(int prompt_index) const {
    const auto found = memory_.find(prompt_index);
    std::vector<RunId> order;
    for (const RunId run : runs(prompt_index)) {
        if (is_what_if(run)) continue;
        order.push_back(run);
        if (found == memory_.end()) continue;
        for (const MemoryRun& added : found->second.added)
            if (added.source == run) order.push_back(added.id);
    }
    return order;
}

void Document::show(std::shared_ptr<const trace::Reader> file, std::map<int, MemoryRuns> memory) {
    auto reader = file;
    const auto add = [&](int prompt_index, const MemoryRun& run) {
        reader = std::make_shared<const trace::Reader>(reader->with_run(prompt_index, *run.record));
    };
    for (const auto& [prompt_index, runs] : memory) {
        if (prompt_index >= file->n_prompts()) continue;
        for (const auto& [number, pending] : runs.pending) add(prompt_index, pending);
        for (const MemoryRun& added : runs.added) add(prompt_index, added);
    }
    file_ = std::move(file);
    reader_ = std::move(reader);
    memory_ = std::move(memory);
    number_runs_of_file();
    runs_ = in_file_;
    for (const auto& [prompt_index, in_memory] : memory_) {
        if (prompt_index >= file_->n_prompts()) continue;
        for (const auto& [number, pending] : in_memory.pending) runs_[prompt_index].push_back(pending.id);
        for (const MemoryRun& added : in_memory.added) runs_[prompt_index].push_back(added.id);
    }
    label_runs();
}

bool can_be_label(const std::string& label) {
    return label.find_first_not_of(" \t") != std::string::npos && label.find("##") == std::string::npos;
}

void Document::label_runs() {
    std::map<std::pair<int, int>, std::string> labels;
    for (const GivenLabel& given : given_labels_) {
        const auto run = given.run_number >= 0 ? run_called(given.prompt, given.run_number, given.run) : std::nullopt;
        if (run) labels[{given.prompt, place_of(given.prompt, *run).value()}] = given.label;
    }
    const bool had_labels = labels_version_ > 0;
    if (had_labels || !labels.empty()) reader_ = std::make_shared<const trace::Reader>(reader_->with_labels(labels));
}

void Document::set_given_labels(std::vector<GivenLabel> labels) {
    if (labels == given_labels_) return;
    given_labels_ = std::move(labels);
    ++labels_version_;
    label_runs();
}

void Document::give_label(int prompt_index, RunId run, const std::string& label) {
    const auto number = number_of(prompt_index, run);
    if (!number) return;
    GivenLabel given{prompt_index, number->first, number->second, label};
    std::vector<GivenLabel> labels = given_labels_;
    std::erase_if(labels, [&](const GivenLabel& old) {
        const bool is_of_run = old.prompt == given.prompt && old.run_number == given.run_number && old.run == given.run;
        if (is_of_run) given.unknown_json = old.unknown_json;
        return is_of_run;
    });
    if (!label.empty() && label != number->second) labels.push_back(std::move(given));
    if (labels == given_labels_) return;
    set_given_labels(std::move(labels));
    annotations_changed = true;
}

const Note* Document::note_on(int of_prompt, int64_t first_token, int64_t last_token) const {
    for (const Note& note : notes)
        if (note.prompt == of_prompt && note.first_token == first_token && note.last_token == last_token) return &note;
    return nullptr;
}

void Document::write_note(int of_prompt, int64_t first_token, int64_t last_token, const std::string& text) {
    const Note* old = note_on(of_prompt, first_token, last_token);
    if (text == (old ? old->text : std::string())) return;
    const std::string unknown_json = old ? old->unknown_json : std::string();
    if (old) notes.erase(notes.begin() + (old - notes.data()));
    if (!text.empty()) notes.push_back({of_prompt, first_token, last_token, text, unknown_json});
    std::ranges::sort(notes, [](const Note& x, const Note& y) {
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

int Document::add_further_answer(const RunKey& run, const std::string& question) {
    const int at = place_of(run.prompt, run.run).value();
    FurtherAnswer answer;
    answer.id = next_answer_++;
    answer.prompt = run.prompt;
    answer.asked = run.run;
    if (const auto number = number_of(run.prompt, run.run)) answer.run_number = number->first;
    answer.run = analysis::recorded_or_default_label(reader_->run(run.prompt, at));
    answer.question = question;
    further_answers_.push_back(std::move(answer));
    return further_answers_.back().id;
}

FurtherAnswer* Document::further_answer(int id) {
    const auto found = std::ranges::find_if(further_answers_, [&](const auto& answer) { return answer.id == id; });
    return found == further_answers_.end() ? nullptr : &*found;
}

std::optional<RunId> Document::run_called(int prompt_index, int run_number, const std::string& label) const {
    const auto is_called_so = [&](RunId run) {
        const auto at = place_of(prompt_index, run);
        return at && analysis::recorded_or_default_label(reader_->run(prompt_index, *at)) == label;
    };
    if (run_number >= 0) {
        const auto found = numbered_.find({prompt_index, run_number});
        return found != numbered_.end() && is_called_so(found->second.id) ? std::optional(found->second.id)
                                                                          : std::nullopt;
    }
    for (const RunId run : runs(prompt_index))
        if (is_what_if(run) && is_called_so(run)) return run;
    return std::nullopt;
}

RunId Document::run_of(const FurtherAnswer& answer) const {
    if (place_of(answer.prompt, answer.asked)) return answer.asked;
    return answer.asked.valid() ? RunId{} : run_called(answer.prompt, answer.run_number, answer.run).value_or(RunId{});
}

std::string Document::stamp() const { return fmt::format("{}.{}.{}", id_, file_version_, labels_version_); }

std::string Document::runs_stamp(int prompt_index) const {
    std::string all;
    for (const RunId run : runs(prompt_index)) all += run_stamp(prompt_index, run) + ' ';
    return all;
}

std::string Document::run_stamp(int prompt_index, RunId run) const {
    const MemoryRun* in_memory = memory_run(run);
    const std::string name = fmt::format("{}/{}/{}", stamp(), prompt_index, run.number);
    return in_memory ? fmt::format("{}+{}", name, in_memory->version) : name;
}

}  // namespace kvscope::gui
