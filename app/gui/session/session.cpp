#include "app/gui/session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "analysis/runs/run_pairs.h"
#include "analysis/runs/run_style.h"
#include "app/gui/session/annotations.h"
#include "app/gui/session/whole_path.h"
#include "common/json.h"
#include "common/unique_id.h"
#include "trace/part_folder.h"
#include "trace/records/schema.h"

namespace kvscope::gui {

namespace {

bool has_entry_budget(const trace::RunAttributes& run) {
    return !run.is_full() && run.status == "complete" && !run.budget_of;
}

int64_t budget_to_show(const trace::Reader& reader, int prompt) {
    const int64_t n_tokens = reader.prompt(prompt).visible_tokens();
    int64_t largest = 0, largest_below = 0;
    for (const auto& run : reader.runs(prompt)) {
        if (!has_entry_budget(run)) continue;
        largest = std::max(largest, run.budget);
        if (run.budget < n_tokens) largest_below = std::max(largest_below, run.budget);
    }
    return largest_below > 0 ? largest_below : largest;
}

}  // namespace

float MapMargins::share(float left, float right, float needed) {
    const std::pair window(static_cast<int>(std::lround(left)), static_cast<int>(std::lround(right)));
    float& now = now_[window];
    now = std::max(now, needed);
    const auto before = before_.find(window);
    return before == before_.end() ? now : std::max(now, before->second);
}

bool MapMargins::end_frame() {
    const bool has_changed = now_ != before_;
    before_ = std::exchange(now_, {});
    return has_changed;
}

std::optional<Tasks::Seconds> Session::end_frame() {
    hover_.end_frame();
    const bool is_moved = map_margins.end_frame();
    auto& flicker = pair.flicker;
    if (flicker && (!exists(*flicker) || document(*flicker)->prompt != flicker->prompt)) flicker.reset();
    const auto next = tasks.end_frame();
    return is_moved ? Tasks::Seconds(0) : next;
}

int Session::id_for(const std::filesystem::path& path, int wanted) const {
    constexpr int largest_wanted = 1'000'000;  // a damaged workspace may ask for any number
    const auto given = given_ids_.find(wanted);
    const bool is_free = given == given_ids_.end() || (given->second == path && !document(wanted));
    if (wanted > 0 && wanted <= largest_wanted && is_free) return wanted;
    return given_ids_.empty() ? 1 : given_ids_.rbegin()->first + 1;
}

Document& Session::open(const std::filesystem::path& path, bool is_written, int wanted_id) {
    if (is_written) pair.alone = false;  // the user expects to see the new run
    std::error_code error;
    // While a trace is being written, the file at its path does not exist yet.
    const auto whole = absolute_path(path).lexically_normal();
    // The path may name the folder of an unfinished trace that has been finished since.
    const auto finished = absolute_path(trace::find_joined_trace(path).value_or(path)).lexically_normal();
    const auto known = std::ranges::find_if(documents_, [&](const auto& document) {
        const auto of_document = absolute_path(document->path()).lexically_normal();
        const bool goes_on = is_written && of_document == trace::part_folder_of(whole);
        return of_document == whole || of_document == finished || goes_on ||
               std::filesystem::equivalent(of_document, whole, error);
    });
    if (known != documents_.end() && is_written) (*known)->set_written(path);
    if (known != documents_.end() && !(*known)->is_of_another_trace()) {
        (*known)->reload();
        return **known;
    }
    // Annotations of the previous trace at this path are saved before its document is closed.
    if (known != documents_.end() && (*known)->annotations_changed)
        save_annotations(**known, load_trace_display((*known)->path()));
    auto opened = std::make_unique<Document>(id_for(whole, wanted_id), path, is_written);
    given_ids_[opened->id()] = whole;
    if (known != documents_.end()) {
        forget((*known)->id());
        *known = std::move(opened);
        return take_in(**known);
    }
    documents_.push_back(std::move(opened));
    return take_in(*documents_.back());
}

Document& Session::open_again(int id, const std::filesystem::path& path) {
    const auto after = std::ranges::find_if(documents_, [&](const auto& document) { return document->id() > id; });
    return take_in(**documents_.insert(after, std::make_unique<Document>(id, path)));
}

Document& Session::take_in(Document& document) {
    load_annotations(document);
    show_one_budget(document);
    if (!cursor().run.valid()) select_first_run(document);
    return document;
}

void Session::select_first_run(const Document& document) {
    std::optional<RunKey> first;
    for (const RunKey& key : all_runs()) {
        const auto& run = attributes(key);
        if (key.document != document.id() || run.is_full() || run.status != "complete" || !is_visible(key)) continue;
        if (!first) first = key;
        if (!at(key).reader->has(at(key).place(), trace::schema::run::scores)) continue;
        return selection.select_run(key);
    }
    if (first) selection.select_run(*first);
}

void Session::close(int id) {
    // Closing a file waits for other readers, so a worker closes the file.
    if (const Document* closed = document(id)) {
        auto last = std::make_shared<std::vector<std::shared_ptr<const trace::Reader>>>(
            std::vector{closed->reader(), closed->file()});
        tasks.once(
            [last] {
                last->clear();
                return std::string();
            },
            [](const std::string&, bool) {});
    }
    std::erase_if(documents_, [&](const auto& document) { return document->id() == id; });
    forget(id);
}

void Session::forget(int id) {
    styles_.clear();
    selection.forget_document(id);
    pair.forget_document(id);
}

Document* Session::document(int id) const {
    for (const auto& document : documents_)
        if (document->id() == id) return document.get();
    return nullptr;
}

Document* Session::focus() const {
    const auto is_shown = [&](const Document& of) {
        if (of.prompt >= of.reader()->n_prompts()) return false;
        const auto keys = of.keys(of.prompt);
        return keys.empty() || std::ranges::any_of(keys, [&](const RunKey& key) { return is_visible(key); });
    };
    Document* told = document(displayed_run());
    if (told && is_shown(*told)) return told;
    for (const auto& of : documents_)
        if (is_shown(*of)) return of.get();
    if (told) return told;
    return documents_.empty() ? nullptr : documents_.front().get();
}

bool Session::exists(const RunKey& key) const {
    const Document* of = document(key);
    return of && of->place_of(key.prompt, key.run);
}

RunAt Session::at(const RunKey& key) const {
    const Document* of = document(key);
    const auto place = of ? of->place_of(key.prompt, key.run) : std::nullopt;
    if (!place) throw std::out_of_range("this run no longer exists");
    return {of->reader(), key.prompt, *place};
}

const trace::RunAttributes& Session::attributes(const RunKey& key) const { return at(key).attributes(); }

bool Session::is_visible(const RunKey& key) const {
    const Document* of = document(key);
    if (pair.flicker) return key == *pair.flicker;
    if (pair.is_alone()) return pair.has(key);
    return of && !of->hidden.contains(key);
}

size_t Session::show_one_budget(Document& document, const RunKey& chosen) {
    constexpr std::ptrdiff_t most_at_first = 8;
    if (document.runs_were_chosen) return 0;
    const size_t n_before = document.hidden.size();
    const trace::Reader& reader = *document.file();
    for (int prompt = 0; prompt < reader.n_prompts(); ++prompt) {
        const auto& runs = reader.runs(prompt);
        if (std::ranges::count_if(runs, has_entry_budget) <= most_at_first) continue;
        const int64_t shown = budget_to_show(reader, prompt);
        for (int run = 0; run < reader.n_runs(prompt); ++run) {
            const auto& attributes = reader.run(prompt, run);
            const RunKey key = document.key_of(prompt, run);
            if (attributes.is_full() || attributes.budget_of || attributes.budget == shown) continue;
            if (key != chosen && key != pair.a && key != pair.b) document.hidden.insert(key);
        }
    }
    if (cursor().run.document == document.id() && !is_visible(cursor().run)) select_first_run(document);
    return document.hidden.size() - n_before;
}

void Session::set_visible(const RunKey& key, bool visible) {
    Document* of = document(key);
    if (!of) return;
    pair.flicker.reset();
    pair.alone = false;
    of->runs_were_chosen = true;
    if (visible)
        of->hidden.erase(key);
    else
        of->hidden.insert(key);
}

std::vector<RunKey> Session::all_runs() const {
    std::vector<RunKey> keys;
    for (const auto& of : documents_) {
        if (of->prompt >= of->reader()->n_prompts()) continue;
        for (const RunId run : of->shown_order(of->prompt)) keys.push_back({of->id(), of->prompt, run});
    }
    return keys;
}

std::pair<RunKey, RunKey> Session::first_pair_of_two_traces(const std::vector<RunKey>& runs) const {
    if (documents_.size() < 2) return {};
    const auto n_tokens = [](const Document& of) {
        return of.prompt < of.reader()->n_prompts() ? of.reader()->prompt(of.prompt).n_tokens : -1;
    };
    const Document& first = *documents_[0];
    const Document& second = *documents_[1];
    if (n_tokens(first) != n_tokens(second)) return {};
    std::vector<RunKey> of_first, of_second;
    std::vector<const trace::RunAttributes*> first_attributes, second_attributes;
    for (const RunKey& key : runs) {
        if (key.document == first.id()) {
            of_first.push_back(key);
            first_attributes.push_back(&attributes(key));
        } else if (key.document == second.id()) {
            of_second.push_back(key);
            second_attributes.push_back(&attributes(key));
        }
    }
    const auto pairs = analysis::pair_runs(second_attributes, first_attributes);
    if (pairs.empty()) return {};
    return {of_second[pairs.front().a], of_first[pairs.front().b]};
}

std::pair<RunKey, RunKey> Session::compared() const {
    const auto is_finished = [&](const RunKey& key) { return exists(key) && attributes(key).status == "complete"; };
    const auto chosen = [&](const std::optional<RunKey>& run) { return run && is_finished(*run) ? *run : RunKey{}; };
    std::pair<RunKey, RunKey> both{chosen(pair.a), chosen(pair.b)};
    std::vector<RunKey> shown = all_runs();
    std::erase_if(shown, [&](const RunKey& key) { return !is_finished(key) || document(key)->hidden.contains(key); });
    std::vector<RunKey> compressed = shown;
    std::erase_if(compressed, [&](const RunKey& key) { return attributes(key).is_full(); });
    if (!both.first.valid() && !both.second.valid()) both = first_pair_of_two_traces(compressed);
    for (const RunKey& key : compressed.size() < 2 ? shown : compressed) {
        if (!both.first.valid() && key != both.second) both.first = key;
        if (!both.second.valid() && key != both.first) both.second = key;
    }
    return both;
}

std::vector<RunKey> Session::visible_runs(bool with_full) const {
    std::vector<RunKey> keys = all_runs();
    std::erase_if(keys, [&](const RunKey& key) {
        const auto& run = attributes(key);
        return !is_visible(key) || run.status != "complete" || (run.is_full() && !with_full);
    });
    put_a_before_b(keys);
    return keys;
}

void Session::put_a_before_b(std::vector<RunKey>& keys) const {
    if (!pair.is_alone() && keys.size() != 2) return;
    const auto [run_a, run_b] = compared();
    const auto of_a = std::ranges::find(keys, run_a);
    const auto of_b = std::ranges::find(keys, run_b);
    if (of_a != keys.end() && of_b < of_a) std::iter_swap(of_a, of_b);
}

RunLook Session::look(const RunKey& key) const {
    const Document& of = *document(key);
    const auto& runs = of.reader()->runs(key.prompt);
    const auto i = static_cast<size_t>(at(key).run);
    RunLook look;
    look.run = analysis::run_label(runs[i]);
    if (!runs[i].given_label.empty()) look.recorded = analysis::recorded_or_default_label(runs[i]);
    look.style = key.prompt == of.prompt ? styles_of(of)[i] : analysis::run_styles(runs)[i];
    if (documents_.size() > 1) {
        look.trace = name_of(of);
        look.badge = badge_in_brackets(of);
    }
    look.label = look.trace.empty() ? look.run : fmt::format("{}: {}", look.trace, look.run);
    return look;
}

std::string Session::name_of(const Document& of) const {
    const bool is_unique = std::ranges::none_of(
        documents_, [&](const auto& other) { return other.get() != &of && other->name() == of.name(); });
    if (is_unique) return of.name();
    return (absolute_path(of.path()).parent_path().filename() / of.name()).string();
}

std::string Session::stamp(const RunKey& key) const {
    const Document* of = document(key);
    return of ? of->run_stamp(key.prompt, key.run) : "closed";
}

void Session::remove_added_run(const RunKey& what_if) {
    Document* of = document(what_if);
    if (!of || !of->is_what_if(what_if.run)) return;
    of->remove_run(what_if.run);
    of->hidden.erase(what_if);
    selection.forget(what_if);
    hover_.forget(what_if);
    pair.forget(what_if);
}

RunKey Session::like_in(const Document& of, int prompt, const RunKey& run) const {
    if (!exists(run)) return {};
    if (run.document != of.id() || run.prompt != of.prompt) return run;
    const auto like = of.like(run.prompt, run.run, prompt);
    return like ? RunKey{of.id(), prompt, *like} : RunKey{};
}

void Session::show_prompt(Document& of, int prompt) {
    Cursor moved = cursor();
    moved.run = like_in(of, prompt, moved.run);
    if (moved.run != cursor().run) {
        moved.step = Cursor().step;
        const auto& now = of.reader()->prompt(prompt);
        const bool same_tokens = !now.query_aware && now.context_of.value_or(prompt) ==
                                                         of.reader()->prompt(of.prompt).context_of.value_or(of.prompt);
        if (!same_tokens) moved.first_token = moved.last_token = Cursor().first_token;
        selection.set(moved);
    }
    move_pair(of, prompt);
    of.prompt = prompt;
}

void Session::move_pair(const Document& of, int prompt) {
    for (auto* slot : {&pair.a, &pair.b}) {
        if (!*slot) continue;
        *slot = like_in(of, prompt, **slot);
        if (!(*slot)->valid()) slot->reset();
    }
}

void Session::go_back() {
    selection.back();
    show_selected_prompt();
}

void Session::go_forward() {
    selection.forward();
    show_selected_prompt();
}

void Session::show_selected_prompt() {
    const RunKey selected = cursor().run;
    Document* of = document(selected);
    if (!of || selected.prompt < 0 || selected.prompt >= of->reader()->n_prompts()) return;
    if (selected.prompt != of->prompt) move_pair(*of, selected.prompt);
    of->prompt = selected.prompt;
}

int64_t Session::n_axis_tokens() const {
    int64_t most = 0;
    for (const auto& document : documents_) {
        if (document->prompt < document->reader()->n_prompts())
            most = std::max(most, document->reader()->prompt(document->prompt).visible_tokens());
    }
    return most;
}

std::string trace_badge_of(const Document& document) { return std::to_string(document.id()); }

std::string badge_in_brackets(const Document& document) { return "[" + trace_badge_of(document) + "]"; }

std::string trace_title(const Session& session, const Document& document) {
    constexpr size_t most_characters = 24;
    const std::string name = session.name_of(document);
    return badge_in_brackets(document) + (name.size() <= most_characters ? " " + name : "");
}

std::string label_in_title(const Session& session, const RunKey& run) {
    const RunLook look = session.look(run);
    return look.trace.empty() ? look.label : trace_title(session, *session.document(run)) + ": " + look.run;
}

const std::vector<analysis::LineStyle>& RunStyles::of(const Document& document, const Documents& documents) const {
    std::vector<std::pair<std::shared_ptr<const trace::Reader>, int>> prompts;
    size_t place = 0;
    for (const auto& each : documents) {
        if (each.get() == &document) place = prompts.size();
        prompts.emplace_back(each->reader(), each->prompt);
    }
    if (prompts != prompts_) {
        const auto runs_of = [](const trace::Reader& reader, int prompt) {
            return prompt < reader.n_prompts() ? reader.runs(prompt) : std::vector<trace::RunAttributes>{};
        };
        std::vector<std::vector<trace::RunAttributes>> runs;
        for (const auto& [reader, prompt] : prompts) runs.push_back(runs_of(*reader, prompt));
        const Document& first = *documents.front();
        auto styles = analysis::run_styles_of_traces(runs, runs_of(*first.file(), first.prompt));
        if (styles != of_documents_ || number_ == 0) number_ = unique_id();
        of_documents_ = std::move(styles);
        prompts_ = std::move(prompts);
    }
    return of_documents_[place];
}

uint64_t RunStyles::number(const Documents& documents) const {
    if (documents.empty()) return 0;
    of(*documents.front(), documents);
    return number_;
}

void RunStyles::clear() {
    prompts_.clear();
    of_documents_.clear();
    number_ = 0;
}

}  // namespace kvscope::gui
