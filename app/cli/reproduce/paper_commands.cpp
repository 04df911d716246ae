#include "app/cli/reproduce/paper_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/cli/sweep/sweep_folder.h"
#include "app/program/input_files.h"
#include "common/file_text.h"
#include "common/replace_all.h"
#include "common/whole_file.h"

namespace kvscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* english_prose = "training/english.txt";
constexpr std::string_view data_place = "{data}";
constexpr size_t bytes_of_passage = 4000;  // about 1,000 tokens of English

/// Divides a text into passages of at most bytes_of_passage that end at line breaks, or in a long line at any place
/// between characters. The last, shorter passage is left out.
std::vector<std::string> passages_of(std::string_view text, size_t n) {
    std::vector<std::string> passages;
    while (text.size() > bytes_of_passage && passages.size() < n) {
        size_t end = text.rfind('\n', bytes_of_passage - 1) + 1;
        if (end == 0) {
            end = bytes_of_passage;
            while ((static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // UTF-8 continuation
        }
        passages.emplace_back(text.substr(0, end));
        text.remove_prefix(end);
    }
    return passages;
}

std::vector<std::string> texts_of_folder(const fs::path& folder, size_t n) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.is_regular_file() && !entry.path().filename().string().starts_with('.'))
            files.push_back(entry.path());
    std::ranges::sort(files);
    files.resize(std::min(files.size(), n));
    std::vector<std::string> texts;
    for (const fs::path& file : files) texts.push_back(program::read_prompt(file));
    return texts;
}

/// Writes a prompt. @throws std::invalid_argument if the file exists with another text, to which traces belong
void write_prompt(const fs::path& file, const std::string& text) {
    std::error_code error;
    if (!fs::exists(file, error)) return write_whole_file(file, text, false);
    if (file_text(file) != text)
        throw std::invalid_argument(file.string() +
                                    " is another text than that of --text: choose another folder with -o");
}

}  // namespace

PaperCommands::PaperCommands(const papers::Paper& paper, PaperSettings settings, fs::path folder)
    : paper_(paper), settings_(std::move(settings)), folder_(std::move(folder)) {}

papers::OptionTexts PaperCommands::options_of(const papers::PaperTrace& trace) const {
    return settings_.is_fast ? papers::with_replaced(trace.options, trace.fast) : trace.options;
}

int PaperCommands::n_texts(const papers::PaperTrace& trace) const {
    return settings_.is_fast ? trace.n_fast_texts : trace.n_texts;
}

fs::path PaperCommands::text_file(int number) const { return folder_ / "texts" / fmt::format("{:03}.txt", number); }

void PaperCommands::write_texts() const {
    int n = 0;
    for (const papers::PaperTrace& trace : paper_.traces) n = std::max(n, n_texts(trace));
    if (n == 0) return;
    const fs::path source = settings_.text.empty() ? program::asset_path(english_prose) : settings_.text;
    std::error_code error;
    const auto most = static_cast<size_t>(n);
    const std::vector<std::string> texts =
        fs::is_directory(source, error) ? texts_of_folder(source, most) : passages_of(program::read_text(source), most);
    if (texts.size() < most)
        throw std::runtime_error(
            fmt::format("{} has {} prompts of at least {}: give a text of {} bytes or more with --text, or a folder "
                        "with a file per prompt",
                        source.string(), texts.size(), n, (most + 1) * bytes_of_passage));
    create_output_folder(folder_ / "texts");
    for (int i = 0; i < n; ++i) write_prompt(text_file(i), texts[static_cast<size_t>(i)]);
}

std::string PaperCommands::filled(std::string value) const {
    value = papers::with_prepared_files(std::move(value), paper_, folder_);
    value = program::with_asset_path(value);
    if (value.find(data_place) == std::string::npos) return value;
    std::string path = value;
    replace_all(path, data_place, settings_.data.string());
    std::error_code error;
    if (settings_.data.empty() || !fs::exists(path, error)) {
        replace_all(value, data_place, "FOLDER");
        throw MissingData(fmt::format("needs {}: give the folder with --data FOLDER", value));
    }
    return path;
}

void PaperCommands::append(std::vector<std::string>& arguments, const papers::OptionTexts& options) const {
    for (const auto& [name, values] : options)
        for (const std::string& value : values) {
            if (value == "false") continue;
            arguments.push_back(value == "true" ? "--" + name : fmt::format("--{}={}", name, filled(value)));
        }
}

void PaperCommands::append_model(std::vector<std::string>& arguments) const {
    if (!settings_.model.empty()) arguments.push_back("--model=" + settings_.model.string());
    if (!settings_.device.empty()) arguments.push_back("--device=" + settings_.device);
}

std::vector<std::string> PaperCommands::preparation(const papers::Preparation& preparation) const {
    std::vector<std::string> arguments = {preparation.command};
    if (!settings_.model.empty()) arguments.push_back("--model=" + settings_.model.string());
    append(arguments,
           settings_.is_fast ? papers::with_replaced(preparation.options, preparation.fast) : preparation.options);
    return arguments;
}

std::vector<const papers::Preparation*> PaperCommands::preparations_of(const papers::PaperTrace& trace) const {
    std::vector<const papers::Preparation*> read;
    for (const papers::Preparation& preparation : paper_.preparations) {
        const std::string place = "{" + preparation.name + "}";
        const bool is_read = std::ranges::any_of(options_of(trace), [&](const auto& option) {
            return std::ranges::any_of(
                option.second, [&](const std::string& value) { return value.find(place) != std::string::npos; });
        });
        if (is_read) read.push_back(&preparation);
    }
    return read;
}

SweepTrace PaperCommands::trace(const papers::PaperTrace& trace) const {
    SweepTrace made{trace.name, {trace.command}};
    append_model(made.arguments);
    append(made.arguments, options_of(trace));
    if (settings_.same_window > 0 && trace.command != "analyze")
        made.arguments.push_back(fmt::format("--same-window={}", settings_.same_window));
    for (int i = 0; i < n_texts(trace); ++i) made.arguments.push_back("--prompt-file=" + text_file(i).string());
    return made;
}

std::vector<std::string> PaperCommands::item(const papers::PaperItem& item) const {
    std::vector<std::string> arguments = {item.command};
    append_model(arguments);
    append(arguments, item.options);
    return arguments;
}

}  // namespace kvscope::cli
