#include "app/gui/view_data/what_if_curves.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/drawing/figure_definition.h"
#include "app/gui/session/engine_session.h"

namespace kvscope::gui {
namespace {

using analysis::CurveRuns;
using analysis::SelectAgain;

struct Worker {
    std::shared_ptr<const trace::Reader> reader;
    int prompt = 0;
    CurveRuns runs;
    std::string over;
    std::shared_ptr<const PrefillInMemory> prefill;
    uint64_t seed = 0;

    Worker with_stop(const std::stop_token& stop) const {
        Worker worker = *this;
        worker.reader = std::make_shared<const trace::Reader>(reader->with_stop(stop));
        return worker;
    }

    /// Throws analysis::NothingToShow if kept sets can be computed neither from the trace nor from the prefill.
    SelectAgain selection() const {
        try {
            const auto what_if = analysis::find_what_if_for_curve(*reader, prompt, runs, over);
            return [what_if](const policies::ParameterValues& values, int64_t budget) {
                return (*what_if)(values, budget);
            };
        } catch (const analysis::NothingToShow&) {
            const auto& source = runs.source;
            if (!prefill || !prefill->obstacle(source.spec, source.budget).empty()) throw;
        }
        return [this](const policies::ParameterValues& values, int64_t budget) {
            const auto n = static_cast<double>(std::max<int64_t>(runs.source.n_tokens, 1));
            const double share = std::min(static_cast<double>(budget) / n, 1.0);
            return prefill->what_if(*reader, prompt, {runs.source.spec.definition, values}, budget, share, seed);
        };
    }
};

std::vector<int> shown_runs(const Session& session, const Document& document, const RunKey& of) {
    std::vector<RunKey> keys = session.visible_runs();
    keys.push_back(of);
    std::vector<int> places;
    for (const RunKey& key : keys) {
        if (key.document != of.document || key.prompt != of.prompt || document.is_what_if(key.run)) continue;
        if (const auto place = document.place_of(key.prompt, key.run)) places.push_back(*place);
    }
    std::ranges::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    return places;
}

}  // namespace

const analysis::CurveChoice& LiveCurves::choice_of(const Session& session, const Document& document, const RunKey& of,
                                                   const std::string& over) {
    const std::vector<int> shown = shown_runs(session, document, of);
    const std::string stamp =
        fmt::format("{} {} {} {}", document.runs_stamp(of.prompt), of.prompt, over, fmt::join(shown, " "));
    if (stamp == choice_stamp_) return choice_;
    choice_stamp_ = stamp;
    const auto& reader = document.reader();
    const int64_t n_tokens = reader->prompt(of.prompt).visible_tokens();
    return choice_ = analysis::group_runs_into_curves(reader->runs(of.prompt), shown, n_tokens, over);
}

LiveCurvesNow LiveCurves::update(Session& session, const EngineSession* engine, const RunKey& of,
                                 const CurveSettings& settings) {
    const Document& document = *session.document(of);
    const auto reader = document.reader();
    const auto& styles = session.styles_of(document);
    const analysis::CurveChoice& choice = choice_of(session, document, of, settings.over);
    const auto prefill = engine ? engine->prefill(of.document, of.prompt) : nullptr;
    LiveCurvesNow now;
    for (const analysis::LeftOut& each : choice.left_out) now.left_out.push_back(each.why);
    now.stamp = fmt::format("{} {} {} {}", session.styles_number(), static_cast<int>(settings.measure), settings.over,
                            settings.threshold);
    for (const CurveRuns& runs : choice.curves) {
        const RunKey first = document.key_of(of.prompt, runs.runs.front());
        const Worker all{reader,        of.prompt, runs,
                         settings.over, prefill,   reader->run(of.prompt, runs.runs.front()).seed};
        std::string stamp = fmt::format("{} {}", settings.over, prefill ? prefill->number : 0);
        for (const int run : runs.runs) stamp += ' ' + session.stamp(document.key_of(of.prompt, run));
        const std::string key = fmt::format("{}/{}/{}", of.document, of.prompt, runs.label);
        const auto curve = session.tasks.ask(curves_, key, stamp, [all](const std::stop_token& stop) {
            const Worker worker = all.with_stop(stop);
            const auto attention = analysis::AnswerAttention::read(*worker.reader, worker.prompt);
            return analysis::what_if_curve(*worker.reader, worker.prompt, worker.runs.source, worker.over,
                                           worker.selection(), attention);
        });
        if (curve.current && !curve.error.empty()) now.left_out.push_back(curve.error);
        if (!curve.current) ++now.n_under_way;
        if (!curve.current || !curve.value) continue;
        analysis::DrawnCurve drawn{runs.label, styles.at(static_cast<size_t>(runs.runs.front())), {}, *curve.value, {},
                                   {}};
        drawn.subject.run = static_cast<int>(now.runs.size());
        now.runs.push_back(first);
        for (const auto& [x, run] : runs.places) {
            drawn.recorded.emplace_back(x, analysis::Subject{.run = static_cast<int>(now.runs.size())});
            now.runs.push_back(document.key_of(of.prompt, run));
        }
        if (settings.over == analysis::over_budget) {
            const auto crossing = session.tasks.ask(
                crossings_, key, fmt::format("{} {} {}", stamp, static_cast<int>(settings.measure), settings.threshold),
                [all, points = curve.value, settings](const std::stop_token& stop) {
                    const Worker worker = all.with_stop(stop);
                    const auto attention = settings.measure == analysis::CurveMeasure::recall
                                               ? analysis::AnswerAttention::read(*worker.reader, worker.prompt)
                                               : std::nullopt;
                    return analysis::smallest_budget_reaching_share(*worker.reader, worker.prompt, worker.runs.source,
                                                                    *points, settings.measure, settings.threshold,
                                                                    worker.selection(), attention);
                });
            if (crossing.current && crossing.value) drawn.reaches = *crossing.value;
            if (!crossing.current) ++now.n_under_way;
        }
        now.stamp += fmt::format(" {} {} {}", key, stamp, drawn.reaches.value_or(-1));
        now.curves.push_back(std::move(drawn));
    }
    return now;
}

}  // namespace kvscope::gui
