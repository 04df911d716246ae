#include "app/cli/own_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "analysis/drawing/figure_definition.h"

namespace kvscope::cli {

std::string OwnOption::help() const {
    std::vector<std::string> texts;
    for (const auto& [help, figures] : meanings) texts.push_back(fmt::format("{}: {}", fmt::join(figures, ", "), help));
    return fmt::format("For {}", fmt::join(texts, "; for "));
}

std::map<std::string, OwnOption> own_options() {
    std::map<std::string, OwnOption> options;
    for (const auto& definition : analysis::all_definitions())
        for (const analysis::FigureOption& option : definition.options) {
            if (!option.is_own()) continue;
            OwnOption& own = options[option.name];
            const auto known =
                std::ranges::find(own.meanings, option.help, [](const auto& meaning) { return meaning.first; });
            auto& meaning = known == own.meanings.end() ? own.meanings.emplace_back() : *known;
            meaning.first = option.help;
            meaning.second.push_back(definition.name);
            ++(definition.has_drawing() ? own.n_figures : own.n_rankings);
        }
    return options;
}

std::vector<std::string> choices_in_figures(const std::string& option) {
    std::set<std::string> choices;
    for (const auto& definition : analysis::all_definitions()) {
        const auto* of_figure = analysis::find_option(definition, option);
        if (of_figure) choices.insert(of_figure->choices.begin(), of_figure->choices.end());
    }
    return {choices.begin(), choices.end()};
}

}  // namespace kvscope::cli
