#include "app/gui/figure_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/figure_definition.h"
#include "analysis/run_style.h"

namespace kvscope::gui {

PreparedFigure prepare_figure(analysis::Figure figure) {
    PreparedFigure prepared;
    for (size_t p = 0; p < figure.panels.size(); ++p) {
        for (size_t l = 0; l < figure.panels[p].layers.size(); ++l) {
            const analysis::Layer& layer = figure.panels[p].layers[l];
            Pyramid pyramid;
            if (const auto* map = std::get_if<analysis::HeatMap>(&layer)) {
                const auto reduce =
                    map->reduction == analysis::Reduction::magnitude ? Reduce::largest_magnitude : Reduce::maximum;
                pyramid = make_pyramid(map->values, map->rows, map->columns, reduce);
            } else if (const auto* classes = std::get_if<analysis::Categories>(&layer)) {
                std::vector<float> values;
                values.reserve(classes->ids.size());
                for (const uint8_t id : classes->ids)
                    values.push_back(id == analysis::Categories::none ? NAN : static_cast<float>(id));
                pyramid = make_pyramid(std::move(values), classes->rows, classes->columns, Reduce::maximum);
            } else {
                continue;
            }
            prepared.pyramids[{p, l}] = std::make_shared<const Pyramid>(std::move(pyramid));
        }
    }
    prepared.figure = std::move(figure);
    return prepared;
}

std::string stamp_of(const Session& session, const FigureRequest& request) {
    const Document* document = session.document(request.document);
    if (!document) return "closed";
    const analysis::FigureOptions& options = request.options;
    std::string runs;
    for (const std::string& name : options.runs) {
        runs += name + ' ';
        const bool is_number = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
        if (is_number) runs += session.stamp({request.document, options.prompt, std::stoi(name)}) + ' ';
    }
    return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}x{}", document->stamp(), request.figure, options.prompt, runs,
                       fmt::join(options.layers, ","), fmt::join(options.heads, ","), fmt::join(options.columns, ","),
                       options.source, options.title, options.width_mm, options.height_mm);
}

Answer<MadeFigure> ask_figure(Session& session, const std::string& slot, const FigureRequest& request) {
    const Document* document = session.document(request.document);
    if (!document) return {std::make_shared<const MadeFigure>(MadeFigure{nullptr, "the trace is closed"}), "", true};
    return session.tasks.ask<MadeFigure>(
        slot, stamp_of(session, request), [reader = document->reader(), request]() -> MadeFigure {
            try {
                const auto& definition = analysis::figure_definition(request.figure);
                return {
                    std::make_shared<const PreparedFigure>(prepare_figure(definition.make(*reader, request.options))),
                    ""};
            } catch (const analysis::NothingToShow& nothing) {
                return {nullptr, nothing.what()};
            }
        });
}

std::shared_ptr<const PreparedFigure> figure_or_reason(const Context& context, const Answer<MadeFigure>& answer,
                                                       const char* waiting) {
    if (answer.value && answer.value->figure) return answer.value->figure;
    if (!answer.error.empty())
        draw_error(context, answer.error);
    else
        draw_nothing(context, answer.value ? answer.value->nothing : waiting);
    return nullptr;
}

FigureRequest shown_request(const Session& session, const std::string& figure, bool with_runs) {
    const Document* focus = session.focus();
    FigureRequest request;
    request.figure = figure;
    if (!focus || focus->prompt >= focus->reader()->n_prompts()) return request;
    request.document = focus->id();
    request.options.prompt = focus->prompt;
    if (!with_runs) return request;
    for (const bool with_full : {false, true}) {
        for (const RunKey& key : session.visible_runs(with_full)) {
            if (key.document == focus->id()) request.options.runs.push_back(std::to_string(key.run));
        }
        if (!request.options.runs.empty()) break;
    }
    return request;
}

std::map<std::string, RunKey> runs_by_label(const Session& session, const FigureRequest& request) {
    std::map<std::string, RunKey> keys;
    const Document* document = session.document(request.document);
    if (!document) return keys;
    const auto& runs = document->reader()->runs(request.options.prompt);
    for (size_t i = 0; i < runs.size(); ++i)
        keys.try_emplace(analysis::run_label(runs[i]),
                         RunKey{request.document, request.options.prompt, static_cast<int>(i)});
    return keys;
}

int n_layers_of(const Session& session, const FigureRequest& request) {
    const Document* document = session.document(request.document);
    return document && document->reader()->has_model() ? static_cast<int>(document->reader()->model().n_layers) : 0;
}

int n_heads_of(const Session& session, const FigureRequest& request) {
    const Document* document = session.document(request.document);
    return document && document->reader()->has_model() ? static_cast<int>(document->reader()->model().n_heads) : 0;
}

}  // namespace kvscope::gui
