#include "app/gui/view_data/runs_alone.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "analysis/runs/run_policy.h"
#include "analysis/runs/run_style.h"
#include "analysis/tables/table_format.h"
#include "common/lower_case.h"

namespace kvscope::gui {
namespace {

bool is_alike(const trace::RunAttributes& run, const trace::RunAttributes& of, Alone which) {
    if (which == Alone::policy) return run.policy == of.policy && run.parameters_json == of.parameters_json;
    if (run.budget_of != of.budget_of) return false;
    return of.budget_of ? run.budget_fraction == of.budget_fraction : run.budget == of.budget;
}

std::string policy_of(const trace::RunAttributes& run) {
    try {
        return analysis::policy_of_run(run).label();
    } catch (const std::exception&) {
        return run.policy;
    }
}

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts(1);
    for (const char c : text) c == at ? void(parts.emplace_back()) : parts.back().push_back(c);
    return parts;
}

/// Splits "snapkv @ 256" into snapkv and 256, and "h2o 25%" into h2o, 25 and %.
std::vector<std::string> words_in(const std::string& text) {
    std::string spaced;
    for (const char c : text) spaced += c == '@' ? " " : c == '%' ? " %" : std::string(1, c);
    std::vector<std::string> words;
    for (std::string& word : split(spaced, ' '))
        if (!word.empty()) words.push_back(std::move(word));
    return words;
}

bool is_number(const std::string& word) { return !word.empty() && word[0] >= '0' && word[0] <= '9'; }

bool has_words(const Session& session, const RunKey& key, const std::vector<std::string>& words, bool is_beginning) {
    const RunLook look = session.look(key);
    std::vector<std::string> own = words_in(lower_case(look.label + " " + look.recorded));
    own.push_back(lower_case(session.attributes(key).policy));
    return std::ranges::all_of(words, [&](const std::string& word) {
        const bool may_begin = is_beginning && !is_number(word);
        return std::ranges::any_of(
            own, [&](const std::string& of) { return of == word || (may_begin && of.starts_with(word)); });
    });
}

/// Returns the runs whose labels contain all words. If there are none, the beginnings of words suffice.
std::vector<RunKey> runs_of_words(const Session& session, const std::vector<std::string>& words) {
    for (const bool is_beginning : {false, true}) {
        std::vector<RunKey> found;
        for (const RunKey& key : session.all_runs())
            if (has_words(session, key, words, is_beginning)) found.push_back(key);
        if (!found.empty()) return found;
    }
    return {};
}

}  // namespace

void show_runs_alone(Session& session, const RunKey& run, Alone which) {
    if (!session.exists(run)) return;
    const trace::RunAttributes of = session.attributes(run);
    for (const RunKey& key : session.all_runs()) {
        const trace::RunAttributes& other = session.attributes(key);
        const bool is_wanted = which == Alone::run ? key == run : is_alike(other, of, which);
        session.set_visible(key, is_wanted || other.is_full());
    }
}

void show_runs_alone(Session& session, const std::vector<RunKey>& runs) {
    for (const RunKey& key : session.all_runs())
        session.set_visible(key, std::ranges::find(runs, key) != runs.end() || session.attributes(key).is_full());
}

std::vector<RunKey> parse_typed_runs(const Session& session, const std::string& typed) {
    constexpr std::string_view only = "only ";
    const std::string text = lower_case(typed);
    if (!text.starts_with(only)) return {};
    std::vector<std::vector<std::string>> parts;
    for (const std::string& part : split(text.substr(only.size()), ',')) parts.push_back(words_in(part));
    const std::vector<std::string> behind_last(parts.back().empty() ? parts.back().end() : parts.back().begin() + 1,
                                               parts.back().end());
    std::vector<RunKey> found;
    for (std::vector<std::string>& words : parts) {
        if (words.empty()) return {};
        std::vector<RunKey> meant;
        if (words.size() == 1 && &words != &parts.back() && !behind_last.empty()) {
            std::vector<std::string> with_last = words;
            with_last.insert(with_last.end(), behind_last.begin(), behind_last.end());
            meant = runs_of_words(session, with_last);
        }
        if (meant.empty()) meant = runs_of_words(session, words);
        if (meant.empty()) return {};
        for (const RunKey& key : meant)
            if (std::ranges::find(found, key) == found.end()) found.push_back(key);
    }
    return found;
}

void show_all_runs(Session& session) {
    for (const RunKey& key : session.all_runs()) session.set_visible(key, true);
}

std::string show_runs_alone_label(const Session& session, const RunKey& run, Alone which) {
    const trace::RunAttributes& of = session.attributes(run);
    switch (which) {
        case Alone::run:
            return "Only " + analysis::run_label(of);
        case Alone::budget:
            return "Only budget " + (of.budget_of ? fmt::format("{:.4g} %", 100 * of.budget_fraction)
                                                  : analysis::format_count(of.budget));
        case Alone::policy:
            return policy_of(of) + " at all budgets";
    }
    return {};
}

}  // namespace kvscope::gui
