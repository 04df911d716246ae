#include "app/gui/view_data/answer_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/runs/run_pairs.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

constexpr std::array<std::string_view, 3> stored_names = {"full", "a", "trace"};  // in the order of Kind

}  // namespace

void AnswerReference::resolve(const Session& session) {
    now_ = Kind::full;
    name_ = full_policy;
    pairs_.clear();
    if (chosen_ == Kind::a && session.pair.a && session.exists(*session.pair.a)) {
        now_ = Kind::a;
        name_ = "A";
    }
    if (chosen_ != Kind::trace) return;
    for (const auto& document : session.documents()) {
        const Comparison comparison{Comparison::Kind::traces, session.name_of(*document), trace_};
        const Compared compared = gui::find_compared_runs(session, comparison, AutomaticComparison::none, true);
        if (compared.kind != Comparison::Kind::traces) continue;
        now_ = Kind::trace;
        name_ = trace_;
        pairs_.insert(pairs_.end(), compared.pairs.begin(), compared.pairs.end());
    }
}

std::optional<RunKey> AnswerReference::of(const Session& session, const RunKey& run) const {
    std::optional<RunKey> reference;
    if (now_ == Kind::full) {
        const Document& document = *session.document(run);
        const auto full = document.reader()->full_run(run.prompt);
        // A failed full run has at most the beginning of an answer.
        if (full && document.reader()->run(run.prompt, *full).status == "complete")
            reference = document.key_of(run.prompt, *full);
    } else if (now_ == Kind::a) {
        reference = session.pair.a;
    } else {
        const auto pair =
            std::find_if(pairs_.begin(), pairs_.end(), [&](const ComparedRuns& each) { return each.a == run; });
        if (pair != pairs_.end()) reference = pair->b;
    }
    if (reference && *reference == run) return std::nullopt;
    return reference;
}

Compared AnswerReference::compared(const Session& session, const std::vector<RunKey>& runs) const {
    Compared all;
    for (const RunKey& run : runs) {
        const auto reference = of(session, run);
        if (!reference) continue;
        const Document* focus = session.focus();
        const bool in_focus = focus && run.document == focus->id();
        if (in_focus && !all.pairs.empty() && all.pairs.front().a.document != run.document) all.pairs.clear();
        if (!all.pairs.empty() && all.pairs.front().a.document != run.document) continue;
        all.pairs.push_back(
            {run, *reference, analysis::pair_label(session.attributes(run), session.attributes(*reference))});
    }
    return all;
}

void AnswerReference::save(nlohmann::json& state) const {
    state["against"] = stored_names.at(static_cast<size_t>(chosen_));
    if (chosen_ == Kind::trace) state["against_trace"] = trace_;
}

void AnswerReference::load(const nlohmann::json& state) {
    const auto* const found =
        std::find(stored_names.begin(), stored_names.end(), state.value("against", std::string()));
    chosen_ = found == stored_names.end() ? Kind::full : static_cast<Kind>(found - stored_names.begin());
    trace_ = state.value("against_trace", std::string());
}

}  // namespace kvscope::gui
