#include "app/gui/figure/report_choices.h"

#include <fmt/format.h>
#include <imgui.h>

#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "app/gui/figure/figure_choices.h"
#include "app/gui/view/text_field.h"
#include "app/gui/view/widgets.h"

namespace kvscope::gui {
namespace {

using analysis::FigureDefinition;

bool parse_numbers(const std::string& text, std::vector<int>& numbers) {
    numbers.clear();
    const char* at = text.data();
    const char* end = at + text.size();
    const auto skip = [&] {
        while (at < end && (*at == ' ' || *at == ',')) ++at;
    };
    const auto number = [&](int& value) {
        const auto [next, error] = std::from_chars(at, end, value);
        at = next;
        return error == std::errc() && value >= 0;
    };
    for (skip(); at < end; skip()) {
        int first = 0;
        if (!number(first)) return false;
        int last = first;
        if (at < end && *at == '-') {
            ++at;
            if (!number(last) || last - first > 10'000) return false;
        }
        for (int i = first; i <= last; ++i) numbers.push_back(i);
    }
    return true;
}

std::vector<std::string> parse_words(const std::string& text) {
    std::vector<std::string> words;
    std::string word;
    for (const char c : text + ',') {
        if (c != ',' && c != ' ') {
            word += c;
        } else if (!word.empty()) {
            words.push_back(std::exchange(word, {}));
        }
    }
    return words;
}

void draw_runs(Context& context, ReportChoices& choices, const std::string& help) {
    Session& session = context.session;
    ImGui::Checkbox("only the runs shown in the app##report", &choices.follows_app);
    item_tooltip(help);
    if (choices.follows_app) return;
    const Document& document = *session.focus();
    ImGui::Indent();
    for (const RunKey& key : document.keys(document.prompt)) {
        if (session.attributes(key).status != "complete") continue;
        bool chosen = choices.runs.contains(key);
        if (!ImGui::Checkbox(fmt::format("{}##report run", session.look(key).label).c_str(), &chosen)) continue;
        if (chosen)
            choices.runs.insert(key);
        else
            choices.runs.erase(key);
    }
    ImGui::Unindent();
}

/// Returns the default that an option's help names, such as "budget"; otherwise the option's hint.
std::string default_of(const analysis::FigureOption& option) {
    constexpr std::string_view mark = "default: ";
    const size_t at = option.help.find(mark);
    if (at == std::string::npos) return option.hint;
    const size_t from = at + mark.size();
    return option.help.substr(from, option.help.find_first_of(",;(", from) - from);
}

void draw_option(Context& context, const FigureDefinition& definition, const analysis::FigureOption& option,
                 ReportChoices& choices) {
    const auto numbers = [&](const char* label, std::string& text) {
        std::vector<int> parsed;
        const bool is_list = parse_numbers(text, parsed);
        if (!is_list) ImGui::PushStyleColor(ImGuiCol_Text, context.theme.error);
        ImGui::SetNextItemWidth(11 * ImGui::GetFontSize());
        text_field(label, "0, 3, 8-11", &text);
        if (!is_list) ImGui::PopStyleColor();
        item_tooltip(option.help);
    };
    if (option.name == "source") draw_source_choice("report", definition, choices.source);
    if (option.name == "layers") numbers("layers##report", choices.layers);
    if (option.name == "heads") numbers("heads##report", choices.heads);
    const auto word = [&](const std::string& name, std::string& text) {
        ImGui::SetNextItemWidth(11 * ImGui::GetFontSize());
        text_field(fmt::format("{}##report", name).c_str(), default_of(option).c_str(), &text);
        item_tooltip(option.help);
    };
    if (option.name == "columns") word("columns", choices.columns);
    if (option.is_own()) word(option.name, choices.own[option.name]);
    const bool of_no_run = definition.name == "jsd" && !choices.source.starts_with("scores");
    if (option.name == "runs" && !of_no_run) draw_runs(context, choices, option.help);
}

}  // namespace

std::vector<RunId> ReportChoices::runs_of(int document, int prompt) const {
    std::vector<RunId> found;
    for (const RunKey& key : runs)
        if (key.document == document && key.prompt == prompt) found.push_back(key.run);
    return found;
}

void ReportChoices::set(analysis::FigureOptions& options) const {
    options.source = source;
    parse_numbers(layers, options.layers);
    parse_numbers(heads, options.heads);
    options.columns = parse_words(columns);
    options.own.clear();
    for (const auto& [name, text] : own)
        if (!text.empty()) options.own[name] = text;
}

void draw_report_choices(Context& context, const FigureDefinition& definition, ReportChoices& choices) {
    for (const auto& option : definition.options) draw_option(context, definition, option, choices);
}

}  // namespace kvscope::gui
