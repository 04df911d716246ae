#include "app/cli/sweep/sweep_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/file_text.h"
#include "common/json.h"
#include "common/whole_file.h"
#include "trace/part_folder.h"

namespace kvscope::cli {
namespace {

namespace fs = std::filesystem;

/// Returns the time of the last change of a file, or of a folder and the files directly in it.
fs::file_time_type last_change(const fs::path& path) {
    std::error_code error;
    auto newest = fs::last_write_time(path, error);
    if (error) return fs::file_time_type::min();
    if (fs::is_directory(path, error))
        for (const auto& entry : fs::directory_iterator(path, error))
            if (const auto time = fs::last_write_time(entry.path(), error); !error) newest = std::max(newest, time);
    return newest;
}

/// Whether a file or folder that an argument such as "--prompt-file=texts/" names has changed after `time`.
bool has_changed_input(const std::vector<std::string>& arguments, fs::file_time_type time) {
    return std::ranges::any_of(arguments, [&](const std::string& argument) {
        const size_t equals = argument.find('=');
        if (equals == std::string::npos) return false;
        const std::string value = argument.substr(equals + 1);
        std::error_code error;
        return fs::exists(value, error) && last_change(value) > time;
    });
}

}  // namespace

void create_output_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
        throw FileNotWritten(fmt::format("{}: the folder cannot be made: {}. Choose another folder with -o",
                                         folder.string(), error.message()));
}

std::string SweepPart::name() const {
    return shard ? trace::file_of_shard(trace->name + ".h5", *shard).stem().string() : trace->name;
}

fs::path SweepFolder::trace_file(const SweepTrace& trace) const { return path_ / (trace.name + ".h5"); }

fs::path SweepFolder::output(const SweepPart& part) const {
    return part.shard ? path_ / "shards" / (part.trace->name + ".h5") : trace_file(*part.trace);
}

std::vector<fs::path> SweepFolder::shard_files(const SweepTrace& trace, int of) const {
    std::vector<fs::path> files;
    std::error_code error;
    for (int number = 1; number <= of; ++number) {
        auto file = trace::file_of_shard(output({&trace, trace::Shard{number, of}}), {number, of});
        if (fs::exists(file, error)) files.push_back(std::move(file));
    }
    return files;
}

std::optional<int> SweepFolder::begun_shards(const SweepTrace& trace) const {
    std::error_code error;
    const fs::path file = trace_file(trace);
    if (fs::exists(file, error) || fs::exists(trace::part_folder_of(file), error)) return 1;
    std::optional<int> most;
    for (const auto& entry : fs::directory_iterator(path_ / "shards", error)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with(trace.name + ".shard-")) continue;
        const size_t of = name.find("-of-", trace.name.size());
        if (of == std::string::npos) continue;
        int number = 0;
        std::from_chars(name.data() + of + 4, name.data() + name.size(), number);
        if (number > 0) most = std::max(most.value_or(0), number);
    }
    return most;
}

void SweepFolder::create() const {
    for (const char* name : {"logs", "shards"}) create_output_folder(path_ / name);
}

fs::path SweepFolder::attempt_file(const SweepPart& part) const { return logs() / (part.name() + ".json"); }

std::optional<SweepAttempt> SweepFolder::last_attempt(const SweepPart& part) const {
    try {
        const auto json = nlohmann::json::parse(file_text(attempt_file(part)));
        SweepAttempt attempt;
        json.at("arguments").get_to(attempt.arguments);
        json.at("environment").get_to(attempt.environment);
        json.at("reason").get_to(attempt.reason);
        json.at("seconds").get_to(attempt.seconds);
        json.at("complete").get_to(attempt.is_complete);
        if (json.at("exit_code").is_number_integer()) attempt.exit_code = json.at("exit_code").get<int>();
        return attempt;
    } catch (const std::exception&) {
        return std::nullopt;  // not yet begun, or damaged: the part is run, and its trace decides what is missing
    }
}

void SweepFolder::write_attempt(const SweepPart& part, const SweepAttempt& attempt) const {
    nlohmann::ordered_json json = {{"arguments", attempt.arguments}, {"environment", attempt.environment},
                                   {"exit_code", nullptr},           {"reason", attempt.reason},
                                   {"seconds", attempt.seconds},     {"complete", attempt.is_complete}};
    if (attempt.exit_code) json["exit_code"] = *attempt.exit_code;
    write_whole_file(attempt_file(part), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
                     true);
}

bool SweepFolder::is_finished(const SweepPart& part) const {
    const auto attempt = last_attempt(part);
    if (!attempt || !attempt->is_complete || attempt->arguments != part.trace->arguments) return false;
    std::error_code error;
    if (!part.shard && !fs::exists(trace_file(*part.trace), error)) return false;
    return !has_changed_input(part.trace->arguments, last_change(attempt_file(part)));
}

}  // namespace kvscope::cli
