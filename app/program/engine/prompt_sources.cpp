#include "app/program/engine/prompt_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "app/program/input_files.h"
#include "common/lower_case.h"
#include "common/utf8.h"
#include "engine/common/engine_error.h"
#include "engine/prefill/prompt.h"
#include "engine/tasks/api/sample_line.h"

namespace kvscope::program {
namespace {

namespace fs = std::filesystem;

std::string name_of(const fs::path& path) { return utf8_lossy(path.stem().string()); }

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

void add_records(PromptsFound& found, const fs::path& path, std::string_view text,
                 const std::vector<std::string>& questions) {
    engine::for_each_line_with_text(text, [&](std::string_view line, int number) {
        const std::string place = fmt::format("{}:{}", display_name_of_input(path), number);
        try {
            const auto sample = engine::read_sample_line(line, place, engine::LineNeeds::nothing);
            found.prompts.push_back({.name = fmt::format("{}-{}", name_of(path), number),
                                     .context = sample.context,
                                     .questions = sample.question.empty() ? questions : std::vector{sample.question},
                                     .origin = place,
                                     .answers = sample.answers});
        } catch (const engine::UsageError& error) {
            found.problems.emplace_back(error.what());
        }
        return true;
    });
}

void add_file(PromptsFound& found, const fs::path& path, const std::vector<std::string>& questions) {
    std::string text = read_text(path);
    const std::string extension = lower_case(path.extension().string());
    const std::string origin = display_name_of_input(path);
    const bool has_records = extension == ".jsonl" || extension == ".ndjson";
    if (is_blank(text)) {
        found.problems.push_back(origin + (has_records ? ": the file has no lines" : ": the prompt is empty"));
        return;
    }
    if (has_records) return add_records(found, path, text, questions);
    try {
        engine::require_utf8(text, origin);
    } catch (const engine::UsageError& error) {
        found.problems.emplace_back(error.what());
        return;
    }
    found.prompts.push_back(
        {.name = name_of(path), .context = std::move(text), .questions = questions, .origin = origin});
}

void add_folder(PromptsFound& found, const fs::path& folder, const std::vector<std::string>& questions) {
    std::set<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
        if (entry.is_regular_file(error) && !entry.path().filename().string().starts_with('.'))
            files.insert(entry.path());
    for (const fs::path& file : files) {
        try {
            add_file(found, file, questions);
        } catch (const std::runtime_error& unreadable) {
            found.problems.emplace_back(unreadable.what());
        }
    }
    if (error) throw std::runtime_error(fmt::format("{} cannot be read: {}", folder.string(), error.message()));
    if (files.empty())
        throw std::runtime_error(folder.string() + ": the folder contains no file: name a folder of text files");
}

void make_names_unique(std::vector<PromptText>& prompts) {
    std::set<std::string> names;
    for (PromptText& prompt : prompts) {
        const std::string name = prompt.name;
        for (int number = 2; !names.insert(prompt.name).second; ++number)
            prompt.name = fmt::format("{}-{}", name, number);
    }
}

}  // namespace

PromptsFound find_prompts(PromptText text, std::span<const fs::path> sources) {
    PromptsFound found;
    const std::vector<std::string> questions = text.questions;
    if (!text.context.empty()) found.prompts.push_back(std::move(text));
    for (const fs::path& source : sources) {
        std::error_code error;
        fs::is_directory(source, error) ? add_folder(found, source, questions) : add_file(found, source, questions);
    }
    make_names_unique(found.prompts);
    return found;
}

}  // namespace kvscope::program
