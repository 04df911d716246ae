#include "analysis/drawing/figure_definition.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>

#include "policies/registry/name_matching.h"

namespace kvscope::analysis {
namespace {

bool contains(const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
}

std::string checked_source(const FigureDefinition& definition, const std::string& named) {
    const FigureOption* option = find_option(definition, "source");
    if (!option || option->choices.empty()) return "";
    if (named.empty()) return option->choices.front();
    std::string source = underscores_to_hyphens(named);
    if (contains(option->choices, source)) return source;
    throw FigureError(fmt::format("{} has no source '{}'.{} The sources are {} (default: the first)", definition.name,
                                  named, policies::did_you_mean(source, option->choices),
                                  policies::joined(option->choices)));
}

const FigureDefinition* find_definition(std::span<const FigureDefinition> definitions, std::string_view name) {
    const std::string wanted = underscores_to_hyphens(name);
    const auto found = std::find_if(definitions.begin(), definitions.end(),
                                    [&](const FigureDefinition& each) { return each.name == wanted; });
    return found == definitions.end() ? nullptr : &*found;
}

std::vector<std::string> names_of(std::span<const FigureDefinition> definitions) {
    std::vector<std::string> names;
    for (const FigureDefinition& definition : definitions) names.push_back(definition.name);
    return names;
}

void check_number(const std::string& name, const FigureOption& option, const FigureOptions& options) {
    constexpr double most = std::numeric_limits<double>::max();
    const double value = options.numeric_option(option.name, 0, -most, most);
    if (value >= 0 && value <= option.number->most) return;
    throw FigureError(fmt::format("{} of {} must be from 0 to {} {}, not {}", option_flag(option), name,
                                  option.number->most, option.number->unit, value));
}

}  // namespace

std::string FigureOptions::own_text(const std::string& name, const std::string& otherwise) const {
    const auto found = own.find(name);
    return found == own.end() || found->second.empty() ? otherwise : found->second;
}

double FigureOptions::numeric_option(const std::string& name, double otherwise, double least, double most) const {
    const std::string text = own_text(name, "");
    if (text.empty()) return otherwise;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    if (is_number && value >= least && value <= most) return value;
    throw FigureError(fmt::format("--{} must be a number from {} to {}, not '{}'", name, least, most, text));
}

std::span<const FigureDefinition> figure_definitions() {
    const auto& all = all_definitions();
    return {all.begin(), std::partition_point(all.begin(), all.end(), std::mem_fn(&FigureDefinition::has_drawing))};
}

std::span<const FigureDefinition> ranking_definitions() {
    return std::span(all_definitions()).subspan(figure_definitions().size());
}

const FigureDefinition& ranking_definition(std::string_view name) {
    if (const auto* found = find_definition(ranking_definitions(), name)) return *found;
    const std::vector<std::string> known = names_of(ranking_definitions());
    throw FigureError(fmt::format("there is no ranking '{}'.{} There are {}", name, policies::did_you_mean(name, known),
                                  policies::joined(known)));
}

const FigureDefinition& figure_definition(std::string_view name) {
    if (const auto* found = find_definition(all_definitions(), name)) return *found;
    const std::vector<std::string> known = names_of(figure_definitions());
    throw FigureError(fmt::format("there is no figure '{}'.{} There are {}", name, policies::did_you_mean(name, known),
                                  policies::joined(known)));
}

const FigureOption* find_option(const std::vector<FigureOption>& options, std::string_view name) {
    const auto found =
        std::find_if(options.begin(), options.end(), [&](const FigureOption& option) { return option.name == name; });
    return found == options.end() ? nullptr : &*found;
}

const FigureOption* find_option(const FigureDefinition& definition, std::string_view name) {
    return find_option(definition.options, name);
}

std::string option_flag(const FigureOption& option) {
    std::string flag = "--" + option.name;
    if (!option.is_own() && flag.ends_with('s')) flag.pop_back();
    return flag;
}

std::string underscores_to_hyphens(std::string_view name) {
    std::string text(name);
    std::replace(text.begin(), text.end(), '_', '-');
    return text;
}

std::string options_in_words(const std::vector<FigureOption>& options) {
    std::string words;
    for (const FigureOption& option : options) words += (words.empty() ? "" : ", ") + option_flag(option);
    return words.empty() ? "no options" : words;
}

void check_options(const FigureDefinition& definition, const FigureOptions& options) {
    const std::string name = (definition.has_drawing() ? "" : "the ranking ") + definition.name;
    const auto require = [&](bool is_set, const FigureOption& asked) {
        if (!is_set) return;
        if (const FigureOption* option = find_option(definition, asked.name)) {
            if (option->number) check_number(name, *option, options);
            if (option->of_sources.empty()) return;
            const std::string source = checked_source(definition, options.source);
            if (contains(option->of_sources, source)) return;
            throw FigureError(fmt::format("{} uses {} only with --source {}, not with {}", name, option_flag(*option),
                                          fmt::join(option->of_sources, ", "), source));
        }
        throw FigureError(fmt::format("{} does not use {}; it uses {}", name, option_flag(asked),
                                      options_in_words(definition.options)));
    };
    require(!options.source.empty(), {"source", ""});
    checked_source(definition, options.source);
    require(!options.runs.empty(), {"runs", ""});
    require(!options.layers.empty(), {"layers", ""});
    require(!options.heads.empty(), {"heads", ""});
    require(!options.columns.empty(), {"columns", ""});
    require(options.tokens.has_value(), {"tokens", ""});
    for (const auto& [own, text] : options.own) require(true, {own, "", {}, {}, "a figure's own"});
}

FigureOptions options_used_by_figure(const FigureDefinition& definition, const FigureOptions& options) {
    FigureOptions heeded = options;
    try {
        checked_source(definition, options.source);
        if (!find_option(definition, "source")) heeded.source.clear();
    } catch (const FigureError&) {
        heeded.source.clear();
    }
    const auto is_heeded = [&](const std::string& name) {
        const FigureOption* option = find_option(definition, name);
        return option &&
               (option->of_sources.empty() || contains(option->of_sources, checked_source(definition, heeded.source)));
    };
    const auto keep_heeded = [&](const char* name, auto& value) {
        if (!is_heeded(name)) value = {};
    };
    keep_heeded("runs", heeded.runs);
    keep_heeded("layers", heeded.layers);
    keep_heeded("heads", heeded.heads);
    keep_heeded("columns", heeded.columns);
    keep_heeded("tokens", heeded.tokens);
    std::erase_if(heeded.own, [&](const auto& own) { return !is_heeded(own.first); });
    return heeded;
}

std::string why_no_figure(const FigureDefinition& definition, const trace::Reader& reader,
                          const FigureOptions& options) {
    try {
        definition.check(reader, options);
    } catch (const NothingToShow& nothing) {
        return nothing.what();
    }
    return "";
}

}  // namespace kvscope::analysis
