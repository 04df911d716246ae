#include "app/gui/view_data/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/runs/run_pairs.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

constexpr std::array<std::string_view, 4> stored_kinds = {"automatic", "none", "runs",
                                                          "traces"};  // in the order of Kind

const Document* find_named(const Session& session, const std::string& name) {
    for (const auto& document : session.documents())
        if (session.name_of(*document) == name) return document.get();
    return nullptr;
}

std::vector<RunKey> finished_runs(const Session& session, const Document& document, bool shown_only) {
    std::vector<RunKey> runs;
    for (const RunKey& key : session.all_runs())
        if (key.document == document.id() && (!shown_only || session.is_visible(key))) runs.push_back(key);
    return runs;
}

std::vector<ComparedRuns> pairs_of(const Session& session, const Document& trace, const Document& less,
                                   bool shown_only) {
    const std::vector<RunKey> of_a = finished_runs(session, trace, shown_only);
    const std::vector<RunKey> of_b = finished_runs(session, less, false);
    const auto attributes = [&](const std::vector<RunKey>& runs) {
        std::vector<const trace::RunAttributes*> all;
        for (const RunKey& key : runs) all.push_back(&session.attributes(key));
        return all;
    };
    std::vector<ComparedRuns> pairs;
    for (const analysis::RunPair& pair : analysis::pair_runs(attributes(of_a), attributes(of_b))) {
        const RunKey& a = of_a[pair.a];
        const RunKey& b = of_b[pair.b];
        pairs.push_back(
            {a, b, analysis::pair_label(session.attributes(a), session.attributes(b)), pair.same_parameters});
    }
    return pairs;
}

}  // namespace

bool has_pair_to_compare(const Session& session) {
    return session.pair.is_complete() && session.exists(*session.pair.a) && session.exists(*session.pair.b);
}

std::string trace_difference_title(const Session& session, const Document& trace, const Document& less) {
    return fmt::format("{} − {}", trace_title(session, trace), trace_title(session, less));
}

const ComparedRuns* Compared::of(const RunKey& run) const {
    const auto found = std::ranges::find_if(pairs, [&](const ComparedRuns& pair) { return pair.a == run; });
    return found == pairs.end() ? nullptr : &*found;
}

Compared find_compared_runs(const Session& session, const Comparison& comparison, AutomaticComparison automatic,
                            bool shown_only) {
    using Kind = Comparison::Kind;
    const auto& documents = session.documents();
    Compared compared;
    const Document* trace = nullptr;
    const Document* less = nullptr;
    if (comparison.kind == Kind::traces) {
        trace = find_named(session, comparison.trace);
        less = find_named(session, comparison.less);
    }
    const bool is_chosen = comparison.kind == Kind::none ||
                           (comparison.kind == Kind::runs && has_pair_to_compare(session)) ||
                           (trace && less && trace != less);
    if (is_chosen) {
        compared.kind = comparison.kind;
    } else if (automatic != AutomaticComparison::none && documents.size() == 2) {
        compared.kind = Kind::traces;
        trace = documents[1].get();
        less = documents[0].get();
    } else if (automatic == AutomaticComparison::traces_or_runs && documents.size() == 1 &&
               has_pair_to_compare(session)) {
        compared.kind = Kind::runs;
    }
    if (compared.kind == Kind::runs) {
        compared.title = "A − B";
        const auto& a = session.attributes(*session.pair.a);
        const auto& b = session.attributes(*session.pair.b);
        compared.pairs = {
            {*session.pair.a, *session.pair.b, analysis::pair_label(a, b), a.parameters_json == b.parameters_json}};
    } else if (compared.kind == Kind::traces) {
        compared.trace = trace;
        compared.less = less;
        compared.title = trace_difference_title(session, *trace, *less);
        compared.pairs = pairs_of(session, *trace, *less, shown_only);
        // Checks all runs, so that hiding runs does not end the comparison of two traces.
        if (!is_chosen && compared.pairs.empty() && pairs_of(session, *trace, *less, false).empty()) compared = {};
    }
    return compared;
}

FigureRequest difference_figure_request(const std::string& figure, const Compared& compared) {
    FigureRequest request;
    request.figure = figure;
    if (compared.pairs.empty()) return request;
    const auto of = [](const RunKey& key) {
        TraceRequest trace{key.document, {}};
        trace.options.prompt = key.prompt;
        return trace;
    };
    const auto add = [](std::vector<RunId>& runs, const RunKey& key) {
        if (std::ranges::find(runs, key.run) == runs.end()) runs.push_back(key.run);
    };
    TraceRequest a = of(compared.pairs.front().a);
    TraceRequest b = of(compared.pairs.front().b);
    for (const ComparedRuns& pair : compared.pairs) {
        add(a.runs, pair.a);
        add(b.runs, pair.b);
    }
    request.document = a.document;
    request.options = a.options;
    request.runs = a.runs;
    request.others = {b};
    request.difference = true;
    return request;
}

std::string why_no_pairs(const Compared& compared) {
    return fmt::format("{}: no shown run has a counterpart with the same policy and budget in the other trace.",
                       compared.title);
}

void write_comparison_to_json(nlohmann::json& state, const Comparison& comparison) {
    state["compare"] = stored_kinds.at(static_cast<size_t>(comparison.kind));
    if (comparison.kind != Comparison::Kind::traces) return;
    state["compare_trace"] = comparison.trace;
    state["compare_less"] = comparison.less;
}

void read_comparison_from_json(const nlohmann::json& state, Comparison& comparison) {
    const auto* const found = std::ranges::find(stored_kinds, state.value("compare", std::string()));
    comparison = {};
    if (found == stored_kinds.end()) return;
    comparison.kind = static_cast<Comparison::Kind>(found - stored_kinds.begin());
    comparison.trace = state.value("compare_trace", std::string());
    comparison.less = state.value("compare_less", std::string());
}

}  // namespace kvscope::gui
