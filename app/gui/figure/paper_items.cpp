#include "app/gui/figure/paper_items.h"

#include <fmt/format.h>
#include <imgui.h>

#include <exception>
#include <memory>

#include "analysis/runs/run_choice.h"
#include "app/gui/view/widgets.h"
#include "app/papers/item_figure.h"

namespace kvscope::gui {
namespace {

using papers::PaperItem;

using Reasons = std::map<std::string, std::string>;

Reasons reasons_of(const trace::Reader& reader) {
    Reasons reasons;
    for (const papers::Paper& paper : papers::all_papers())
        for (const PaperItem& item : paper.items) reasons[item.full_id()] = papers::why_no_item(item, reader);
    return reasons;
}

/// @param reason why the trace cannot show the item; nullptr if this is not known yet
void explain(const PaperItem& item, const std::string* reason) {
    std::string text = item.shows + ".";
    if (!reason)
        text += "\n\nThe trace is being checked.";
    else if (reason->empty())
        text += item.lacks.empty() ? "\n\nClick to show it." : "\n\nClick to show it. " + item.lacks;
    else if (!item.cannot.empty())
        text += "\n\nCannot be made: " + *reason;
    else
        text += fmt::format("\n\nNeeds another trace: {}.\n`kvscope reproduce {}` makes one.", *reason, item.source);
    tooltip_of_disabled(text);
}

}  // namespace

const PaperItem* PaperItems::draw(Context& context) {
    const Document& document = *context.session.focus();
    const auto found = context.session.tasks.ask(reasons_, "", fmt::format("{} {}", document.id(), document.stamp()),
                                                 [reader = document.reader()] { return reasons_of(*reader); });
    if (!found.error.empty()) {
        ImGui::TextWrapped("%s", found.error.c_str());
        return nullptr;
    }
    if (!found.value) return nullptr;  // The files of the papers are being read.
    const PaperItem* clicked = nullptr;
    for (const papers::Paper& paper : papers::all_papers()) {
        if (!ImGui::TreeNodeEx(fmt::format("{}###papers {}", paper.name, paper.name).c_str(),
                               ImGuiTreeNodeFlags_SpanAvailWidth))
            continue;
        for (const PaperItem& item : paper.items) {
            const std::string* reason = found.current ? &found.value->at(item.full_id()) : nullptr;
            const bool can_be_shown = reason && reason->empty();
            ImGui::BeginDisabled(!can_be_shown);
            if (ImGui::Selectable(fmt::format("{}  {}###{}", item.id, item.shows, item.full_id()).c_str()))
                clicked = &item;
            ImGui::EndDisabled();
            explain(item, reason);
        }
        ImGui::TreePop();
    }
    return clicked;
}

ReportChoices choices_of_item(const PaperItem& item, const Document& document) {
    const analysis::FigureOptions options = papers::figure_options(item);
    ReportChoices choices;
    choices.source = options.source;
    choices.layers = fmt::format("{}", fmt::join(options.layers, ", "));
    choices.heads = fmt::format("{}", fmt::join(options.heads, ", "));
    choices.columns = fmt::format("{}", fmt::join(options.columns, ", "));
    choices.own = options.own;
    if (options.runs.empty() || analysis::figure_definition(item.figure).runs_are_settings) return choices;
    analysis::FigureOptions of_prompt = options;
    of_prompt.prompt = document.prompt;
    const auto keys = document.keys(document.prompt);
    choices.follows_app = false;
    for (const int run : analysis::chosen_runs(*document.reader(), of_prompt))
        if (static_cast<size_t>(run) < keys.size()) choices.runs.insert(keys[static_cast<size_t>(run)]);
    return choices;
}

}  // namespace kvscope::gui
