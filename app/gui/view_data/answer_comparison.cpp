#include "app/gui/view_data/answer_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/runs/run_pairs.h"
#include "common/json.h"
#include "trace/records/schema.h"

namespace kvscope::gui {

namespace {

namespace schema = trace::schema;

std::vector<int32_t> ids_of(const RunAt& of) {
    if (!of.reader->has(of.place(), schema::run::output_ids)) return {};
    return of.reader->read<int32_t>(of.place(), schema::run::output_ids);
}

std::vector<float> kl_of(const RunAt& of) {
    if (!of.reader->has(of.place(), schema::run::step_kl)) return {};
    return of.reader->read<float>(of.place(), schema::run::step_kl);
}

/// Returns when the cache changed its form, e.g. "after step 16 the cache became full; after step 40 compressed".
std::string switches_of(const RunAt& of) {
    if (!of.reader->has(of.place(), schema::run::switch_steps)) return {};
    const auto steps = of.reader->read<uint32_t>(of.place(), schema::run::switch_steps);
    const auto is_full = of.reader->read<uint8_t>(of.place(), schema::run::switch_is_full);
    std::string text;
    for (size_t i = 0; i < steps.size() && i < is_full.size(); ++i)
        text += fmt::format("{}after step {} {}{}", text.empty() ? "" : "; ", steps[i],
                            text.empty() ? "the cache became " : "", is_full[i] ? "full" : "compressed");
    return text;
}

bool same_vocabulary(const trace::Reader& a, const trace::Reader& b) {
    const auto& of_a = a.model();
    const auto& of_b = b.model();
    return of_a.fingerprint == of_b.fingerprint || (of_a.family == of_b.family && of_a.vocab_size == of_b.vocab_size);
}

}  // namespace

std::vector<float> AnswerOutput::kl_difference() const {
    std::vector<float> out(std::min(kl.size(), reference_kl.size()));
    for (size_t step = 0; step < out.size(); ++step) out[step] = kl[step] - reference_kl[step];
    return out;
}

std::vector<std::string> AnswerOutput::difference_texts() const {
    const size_t n_extra = difference.n_extra(), n_missing = difference.n_missing();
    const std::string words = fmt::format("{} extra, {} missing of {}", n_extra, n_missing, difference.n_reference);
    const std::string signs = fmt::format("+{} −{}", n_extra, n_missing);
    return {fmt::format("{} {}", words, unit()), words, fmt::format("{} of {}", signs, difference.n_reference), signs};
}

bool AnswerOutput::is_marked(size_t step) const {
    if (by_tokens) return step < difference.differs.size() && difference.differs[step];
    if (step >= steps.size()) return false;
    return std::ranges::any_of(
        marks, [&](const StepPlace& mark) { return mark.begin < steps[step].end && mark.end > steps[step].begin; });
}

std::vector<StepPlace> join_differing_places(const std::vector<StepPlace>& places, const std::vector<bool>& differs) {
    std::vector<StepPlace> marks;
    for (size_t i = 0; i < places.size() && i < differs.size(); ++i) {
        if (!differs[i] || places[i].end <= places[i].begin) continue;
        if (!marks.empty() && marks.back().end == places[i].begin)
            marks.back().end = places[i].end;
        else
            marks.push_back(places[i]);
    }
    return marks;
}

AnswerOutput read_and_compare_answer(const RunAt& of, const std::optional<RunAt>& reference) {
    AnswerOutput out;
    out.text = of.attributes().output_text;
    out.words = split_words(out.text);
    const std::vector<int32_t> ids = ids_of(of);
    if (!ids.empty()) out.steps = analysis::answer_byte_ranges(*of.reader, of.prompt, out.text, ids);
    out.kl = kl_of(of);
    out.switches = switches_of(of);
    if (of.reader->has(of.place(), schema::run::step_agreement))
        out.agreement = of.reader->read<uint8_t>(of.place(), schema::run::step_agreement);
    if (!reference || (out.text.empty() && ids.empty())) return out;  // nothing was decoded
    out.has_reference = true;
    out.reference_kl = kl_of(*reference);
    const std::vector<int32_t> reference_ids = ids_of(*reference);
    out.by_tokens = !ids.empty() && !reference_ids.empty() && same_vocabulary(*of.reader, *reference->reader);
    std::vector<StepPlace> places;
    if (out.by_tokens) {
        out.difference = token_difference(ids, reference_ids);
        places = out.steps;
    } else {
        out.difference = word_difference(out.text, out.words, reference->attributes().output_text);
        for (const Word& word : out.words) places.push_back({word.begin, word.end});
    }
    out.marks = join_differing_places(places, out.difference.differs);
    for (size_t i = 0; i < out.difference.left_out.size(); ++i)
        if (out.difference.left_out[i] > 0) out.gaps.push_back(i < places.size() ? places[i].begin : out.text.size());
    return out;
}

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
        const auto pair = std::ranges::find_if(pairs_, [&](const ComparedRuns& each) { return each.a == run; });
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
    const auto* const found = std::ranges::find(stored_names, state.value("against", std::string()));
    chosen_ = found == stored_names.end() ? Kind::full : static_cast<Kind>(found - stored_names.begin());
    trace_ = state.value("against_trace", std::string());
}

}  // namespace kvscope::gui
