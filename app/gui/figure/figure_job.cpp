#include "app/gui/figure/figure_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "analysis/drawing/figure_definition.h"
#include "app/gui/session/session.h"

namespace kvscope::gui {

PreparedFigure prepare_figure(analysis::Figure figure) {
    PreparedFigure prepared;
    for (size_t p = 0; p < figure.panels.size(); ++p) {
        for (size_t s = 0; s < figure.panels[p].shapes.size(); ++s) {
            const analysis::Shape& shape = figure.panels[p].shapes[s];
            Pyramid pyramid;
            if (const auto* map = std::get_if<analysis::HeatMap>(&shape)) {
                const auto reduce =
                    map->reduction == analysis::Reduction::magnitude ? Reduce::largest_magnitude : Reduce::maximum;
                pyramid = make_pyramid(map->values, map->rows, map->columns, reduce);
            } else if (const auto* classes = std::get_if<analysis::Categories>(&shape)) {
                std::vector<float> values;
                values.reserve(classes->ids.size());
                for (const uint8_t id : classes->ids)
                    values.push_back(id == analysis::Categories::none ? NAN : static_cast<float>(id));
                pyramid = make_pyramid(std::move(values), classes->rows, classes->columns, Reduce::maximum);
            } else {
                continue;
            }
            prepared.pyramids[{p, s}] = std::make_shared<const Pyramid>(std::move(pyramid));
        }
    }
    prepared.figure = std::move(figure);
    return prepared;
}

namespace {

std::string stamp_of_trace(const Session& session, const TraceRequest& request) {
    const Document* document = session.document(request.document);
    if (!document) return "closed";
    const analysis::FigureOptions& options = request.options;
    std::string runs;
    for (const RunId run : request.runs) runs += session.stamp({request.document, options.prompt, run}) + ' ';
    if (request.runs.empty()) runs = document->runs_stamp(options.prompt);  // the figure chooses its runs
    std::string own;
    for (const auto& [name, text] : options.own) own += fmt::format("{}={}|", name, text);
    return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}{}|{}x{}", document->stamp(), options.prompt, runs,
                       fmt::join(options.layers, ","), fmt::join(options.heads, ","), fmt::join(options.columns, ","),
                       options.source, own, options.title, options.width_mm, options.height_mm);
}

/// Returns a stamp of the other open traces, on which styles and labels of runs depend.
std::string stamp_of_others(const Session& session) {
    std::string stamp = std::to_string(session.styles_number());
    for (const auto& document : session.documents())
        stamp += fmt::format(
            " {}.{}.{}", document->id(), document->prompt,
            document->prompt < document->reader()->n_prompts() ? document->reader()->n_runs(document->prompt) : 0);
    return stamp;
}

TraceRequest shown_trace(const Session& session, const Document& document, bool with_runs, bool with_full) {
    TraceRequest request{document.id(), {}};
    request.options.prompt = document.prompt;
    if (!with_runs) return request;
    for (const RunKey& key : session.visible_runs(with_full))
        if (key.document == document.id()) request.runs.push_back(key.run);
    return request;
}

/// Returns requests for the documents that have shown runs. Omits full runs if other runs are shown.
std::vector<TraceRequest> shown_traces(const Session& session, const std::vector<const Document*>& documents,
                                       bool with_runs) {
    std::vector<TraceRequest> requests;
    for (const bool with_full : {false, true}) {
        for (const Document* document : documents) {
            TraceRequest request = shown_trace(session, *document, with_runs, with_full);
            if (!with_runs || !request.runs.empty()) requests.push_back(std::move(request));
        }
        if (!requests.empty()) return requests;
    }
    // If no run is shown, the figure's definition chooses the runs.
    for (const Document* document : documents) requests.push_back(shown_trace(session, *document, false, false));
    return requests;
}

void add_traces(FigureRequest& request, const std::vector<TraceRequest>& traces) {
    if (traces.empty()) return;
    request.document = traces.front().document;
    request.options = traces.front().options;
    request.runs = traces.front().runs;
    request.others.assign(traces.begin() + 1, traces.end());
}

std::vector<analysis::RunChoice> places_of(const Document& document, const TraceRequest& request) {
    std::vector<analysis::RunChoice> places;
    for (const RunId run : request.runs)
        if (const auto place = document.place_of(request.options.prompt, run)) places.emplace_back(*place);
    if (places.empty() && !request.runs.empty()) throw analysis::NothingToShow("the runs no longer exist");
    return places;
}

}  // namespace

RunKey PreparedFigure::run_of(const analysis::Subject& subject) const {
    const bool is_known = subject.run >= 0 && subject.trace < runs.size() &&
                          static_cast<size_t>(subject.run) < runs[subject.trace].size();
    return is_known ? runs[subject.trace][static_cast<size_t>(subject.run)] : RunKey{};
}

RunKey PreparedFigure::run_of(size_t panel, size_t shape) const {
    const analysis::Panel& of = figure.panels[panel];
    return run_of(analysis::subject_of_shape(of, of.shapes[shape]));
}

std::optional<Cursor> PreparedFigure::cursor_of(const Session& session, const analysis::Subject& subject) const {
    if (subject.trace >= traces.size()) return std::nullopt;
    const auto [id, prompt] = traces[subject.trace];
    const Document* document = session.document(id);
    if (!document) return std::nullopt;
    Cursor cursor;
    cursor.run = run_of(subject);
    if (!session.exists(cursor.run)) cursor.run = {id, prompt, {}};
    cursor.layer = subject.layer;
    cursor.first_token = cursor.last_token = subject.token;
    cursor.step = subject.step;
    if (subject.head < 0) return cursor;
    const auto& model = document->reader()->model();
    cursor.query_head = subject.query_heads ? subject.head : -1;
    cursor.kv_head =
        subject.query_heads ? subject.head / static_cast<int>(model.n_heads / model.n_kv_heads) : subject.head;
    return cursor;
}

bool PreparedFigure::is_of(const TraceRequest& request) const {
    return traces.size() == 1 && traces.front() == std::pair{request.document, request.options.prompt};
}

std::vector<RunKey> sides_of_difference(const FigureRequest& request) {
    std::vector<RunKey> sides;
    for (size_t i = 0; request.difference && i < request.n_traces(); ++i) {
        const TraceRequest side = request.trace(i);
        sides.push_back({side.document, side.options.prompt, side.runs.size() == 1 ? side.runs.front() : RunId{}});
    }
    return sides;
}

std::string figure_change_stamp(const Session& session, const FigureRequest& request) {
    std::string stamp =
        fmt::format("{}|{}{}|{}", request.figure, request.difference, request.against_each, stamp_of_others(session));
    for (size_t i = 0; i < request.n_traces(); ++i) stamp += '|' + stamp_of_trace(session, request.trace(i));
    return stamp;
}

FigureJob::FigureJob(const Session& session, const FigureRequest& request, Names names)
    : name_(request.figure), difference_(request.difference), sides_(sides_of_difference(request)) {
    const auto name_of_side = [&](const RunKey& run) {
        return names == Names::in_full ? session.look(run).label : label_in_title(session, run);
    };
    for (size_t i = 0; i < request.n_traces(); ++i) {
        const TraceRequest trace = request.trace(i);
        const Document* document = session.document(trace.document);
        if (!document) throw analysis::NothingToShow("the trace was closed");
        readers_.push_back(document->reader());
        analysis::TracePart part{document->reader().get(), trace.options};
        if (request.n_traces() > 1)
            part.name = names == Names::in_full ? session.name_of(*document) : trace_title(session, *document);
        if (trace.options.prompt == document->prompt) part.styles = session.styles_of(*document);
        part.against_each = request.against_each && i > 0;
        runs_.push_back(document->keys(trace.options.prompt));
        traces_.emplace_back(trace.document, trace.options.prompt);
        part.options.runs = places_of(*document, trace);
        if (difference_ && trace.runs.size() == 1)
            part.name = name_of_side({trace.document, trace.options.prompt, trace.runs.front()});
        parts_.push_back(std::move(part));
    }
}

FigureJob FigureJob::with_stop(const std::stop_token& stop) const {
    FigureJob job = *this;
    for (size_t i = 0; i < readers_.size(); ++i) {
        job.readers_[i] = std::make_shared<const trace::Reader>(readers_[i]->with_stop(stop));
        job.parts_[i].reader = job.readers_[i].get();
    }
    return job;
}

void FigureJob::check() const {
    const auto& definition = analysis::figure_definition(name_);
    if (difference_)
        analysis::check_difference(definition, parts_.at(0), parts_.at(1));
    else
        analysis::check_figure(definition, parts_);
}

figures::Exported FigureJob::exported() const {
    return {[*this] { return figure(); }, [*this] { return numbers(); }, [*this] { check(); }};
}

analysis::Figure FigureJob::figure() const {
    const auto& definition = analysis::figure_definition(name_);
    return difference_ ? analysis::make_difference(definition, parts_.at(0), parts_.at(1))
                       : analysis::make_figure(definition, parts_);
}

std::vector<analysis::TraceFigure> FigureJob::figures() const {
    if (!difference_) return analysis::make_figures_on_one_scale(parts_, analysis::figure_definition(name_).make);
    try {
        return {{figure(), ""}};
    } catch (const analysis::NothingToShow& nothing) {
        return {{std::nullopt, nothing.what()}};
    }
}

analysis::Table FigureJob::numbers() const {
    const auto& definition = analysis::figure_definition(name_);
    return difference_ ? analysis::difference_numbers(definition, parts_.at(0), parts_.at(1))
                       : analysis::make_numbers(definition, parts_);
}

TaskResult<MadeFigure> request_figure(Session& session, const TaskSlot<MadeFigure>& slot,
                                      const FigureRequest& request) {
    try {
        return session.tasks.ask(slot, "", figure_change_stamp(session, request),
                                 [all = FigureJob(session, request, FigureJob::Names::in_titles)](
                                     const std::stop_token& stop) -> MadeFigure {
                                     try {
                                         const FigureJob job = all.with_stop(stop);
                                         PreparedFigure prepared = prepare_figure(job.figure());
                                         prepared.runs = job.runs();
                                         prepared.traces = job.traces();
                                         prepared.sides = job.sides();
                                         return {std::make_shared<const PreparedFigure>(std::move(prepared)), ""};
                                     } catch (const analysis::NothingToShow& nothing) {
                                         return {nullptr, nothing.what()};
                                     }
                                 });
    } catch (const analysis::NothingToShow& closed) {
        return {std::make_shared<const MadeFigure>(MadeFigure{nullptr, closed.what()}), "", true};
    }
}

TaskResult<std::vector<MadeFigure>> request_figures_by_trace(Session& session,
                                                             const TaskSlot<std::vector<MadeFigure>>& slot,
                                                             const FigureRequest& request) {
    using Made = std::vector<MadeFigure>;
    try {
        return session.tasks.ask(
            slot, "", figure_change_stamp(session, request),
            [all = FigureJob(session, request, FigureJob::Names::in_titles)](const std::stop_token& stop) {
                const FigureJob job = all.with_stop(stop);
                Made made;
                for (analysis::TraceFigure& each : job.figures()) {
                    made.push_back({nullptr, each.nothing});
                    if (!each.figure) continue;
                    PreparedFigure prepared = prepare_figure(std::move(*each.figure));
                    const bool is_of_one = made.size() <= job.runs().size() && !job.is_difference();
                    prepared.runs =
                        is_of_one ? std::vector<std::vector<RunKey>>{job.runs()[made.size() - 1]} : job.runs();
                    prepared.traces = is_of_one ? std::vector{job.traces()[made.size() - 1]} : job.traces();
                    prepared.sides = job.sides();
                    made.back().figure = std::make_shared<const PreparedFigure>(std::move(prepared));
                }
                return made;
            });
    } catch (const analysis::NothingToShow& closed) {
        return {std::make_shared<const Made>(request.n_traces(), MadeFigure{nullptr, closed.what()}), "", true};
    }
}

std::shared_ptr<const PreparedFigure> figure_or_draw_reason(const Context& context,
                                                            const TaskResult<MadeFigure>& answer, const char* waiting) {
    if (answer.value && answer.value->figure) return answer.value->figure;
    if (!answer.error.empty())
        draw_error(context, answer.error);
    else
        draw_nothing(context, answer.value ? answer.value->nothing : waiting);
    return nullptr;
}

FigureRequest figure_request_for_shown_runs(const Session& session, const std::string& figure, bool with_runs,
                                            Traces traces) {
    FigureRequest request;
    request.figure = figure;
    const auto can_show = [&](const Document* document) {
        if (!document) return false;
        if (document->prompt < document->reader()->n_prompts()) return true;
        return analysis::why_no_figure(analysis::figure_definition(figure), *document->reader(), {}).empty();
    };
    std::vector<TraceRequest> requests;
    if (traces == Traces::difference) {
        for (const auto& run : {session.pair.a, session.pair.b}) {
            if (!run || !session.exists(*run)) return request;
            TraceRequest& of = requests.emplace_back(TraceRequest{run->document, {}});
            of.options.prompt = run->prompt;
            if (with_runs) of.runs = {run->run};
        }
    } else {
        std::vector<const Document*> documents;
        if (traces == Traces::focused) {
            if (can_show(session.focus())) documents.push_back(session.focus());
        } else {
            for (const auto& document : session.documents())
                if (can_show(document.get())) documents.push_back(document.get());
        }
        requests = shown_traces(session, documents, with_runs);
    }
    add_traces(request, requests);
    request.difference = traces == Traces::difference;
    return request;
}

FigureRequest figure_request_for_runs(const std::string& figure, const std::vector<RunKey>& runs) {
    std::vector<TraceRequest> requests;
    for (const RunKey& key : runs) {
        auto of =
            std::ranges::find_if(requests, [&](const TraceRequest& each) { return each.document == key.document; });
        if (of == requests.end()) {
            of = requests.insert(of, TraceRequest{key.document, {}});
            of->options.prompt = key.prompt;
        }
        of->runs.push_back(key.run);
    }
    FigureRequest request;
    request.figure = figure;
    add_traces(request, requests);
    return request;
}

int n_layers_of_document(const Session& session, int id) {
    const Document* document = session.document(id);
    return document && document->reader()->has_model() ? static_cast<int>(document->reader()->model().n_layers) : 0;
}

int n_heads_of_document(const Session& session, int id) {
    const Document* document = session.document(id);
    return document && document->reader()->has_model() ? static_cast<int>(document->reader()->model().n_heads) : 0;
}

}  // namespace kvscope::gui
