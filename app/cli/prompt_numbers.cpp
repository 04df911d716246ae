#include "app/cli/prompt_numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "analysis/drawing/figure_definition.h"
#include "policies/registry/name_matching.h"

namespace kvscope::cli {
namespace {

/// Returns "a" for "texts/a.txt", and the text itself if it does not end with letters after a dot: "gpt-4.1".
std::string stem_of_file(const std::string& text) {
    const std::filesystem::path path(text);
    const std::string extension = path.extension().string();
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    const bool is_file = extension.size() > 1 && std::all_of(extension.begin() + 1, extension.end(), is_letter);
    return is_file ? path.stem().string() : text;
}

int prompt_number(const trace::Reader& reader, const std::string& text) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return number;
    std::vector<std::string> names;
    for (int prompt = 0; prompt < reader.n_prompts(); ++prompt) names.push_back(reader.prompt(prompt).name);
    for (const std::string& name : {text, stem_of_file(text)}) {
        std::vector<int> found;
        for (int prompt = 0; prompt < reader.n_prompts(); ++prompt)
            if (names[static_cast<size_t>(prompt)] == name) found.push_back(prompt);
        if (found.size() == 1) return found.front();
        if (found.size() > 1)
            throw analysis::FigureError(fmt::format("{}: '{}' is the name of the prompts {}: give --prompt a number",
                                                    reader.path().string(), name, fmt::join(found, ", ")));
    }
    constexpr size_t most_named = 10;
    std::string known;
    for (size_t i = 0; i < names.size() && i < most_named; ++i)
        known += fmt::format("{}{} ({})", i == 0 ? "" : ", ", i, names[i]);
    if (names.size() > most_named) known += fmt::format(" and {} more", names.size() - most_named);
    throw analysis::FigureError(fmt::format("{}: there is no prompt '{}'.{} There are {}", reader.path().string(), text,
                                            policies::did_you_mean(text, names), known));
}

}  // namespace

std::vector<int> prompt_numbers(std::span<const trace::Reader> readers, const std::string& text) {
    std::vector<int> numbers;
    for (const trace::Reader& reader : readers)
        numbers.push_back(reader.n_prompts() > 0 ? prompt_number(reader, text) : 0);
    return numbers;
}

}  // namespace kvscope::cli
