#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "analysis/tables/table_format.h"
#include "app/cli/command.h"
#include "app/cli/option_validators.h"
#include "app/cli/table_format_option.h"
#include "app/cli/terminal.h"
#include "common/counted.h"
#include "common/user_cache_folder.h"
#include "trace/part_folder.h"

namespace kvscope::cli::clean_file {
namespace {

namespace fs = std::filesystem;

struct Arguments {
    std::vector<fs::path> folders = {"."};
    double older_than_days = 1;
    bool with_cache = false;
    bool remove = false;
    OutputFormat format;
};

/// A file or folder that kvscope left and that may be removed.
struct Leftover {
    fs::path path;
    std::string kind;
    std::string obstacle = {};  ///< why it is kept; empty if it can be removed
    uint64_t bytes = 0;
    double days = 0;  ///< since the last change of a file
};

bool is_real_folder(const fs::path& path) {
    std::error_code error;
    return fs::is_directory(fs::symlink_status(path, error));
}

/// Sets size and age. Does not follow links.
void measure(Leftover& leftover) {
    auto newest = fs::file_time_type::min();
    const auto add = [&](const fs::path& path) {
        std::error_code error;
        const auto time = fs::last_write_time(path, error);
        if (!error) newest = std::max(newest, time);
        if (fs::is_regular_file(path, error)) leftover.bytes += fs::file_size(path, error);
    };
    add(leftover.path);
    std::error_code error;
    if (is_real_folder(leftover.path))
        for (const auto& entry : fs::directory_iterator(leftover.path, error)) add(entry.path());
    leftover.days = std::chrono::duration<double, std::ratio<86400>>(fs::file_time_type::clock::now() - newest).count();
}

/// Whether a folder "t.h5.part" has parts of a trace, or only the temporary files of a killed `join`.
bool is_unfinished_trace(const fs::path& folder) {
    std::error_code error;
    if (folder.extension() != ".part" || !is_real_folder(folder)) return false;
    if (fs::exists(folder / "trace.json", error)) return true;
    const fs::directory_iterator entries(folder, error);
    return begin(entries) != end(entries) && std::all_of(begin(entries), end(entries), [](const auto& entry) {
               return entry.path().filename() == "lock" || entry.path().extension() == ".tmp";
           });
}

/// Returns why the folder of an unfinished trace must stay; empty if it can be removed.
std::string obstacle_of(const fs::path& part_folder) {
    try {
        if (const std::string other = trace::foreign_entry(part_folder); !other.empty())
            return fmt::format("contains {}, which kvscope did not make", other);
        std::error_code error;
        if (fs::exists(part_folder / "lock", error)) const trace::FolderLock held(part_folder);
        return "";
    } catch (const std::exception&) {
        return "in use";
    }
}

/// Returns the number of the process that made the temporary file ".NAME.PID-N.tmp"; nullopt for other names.
std::optional<pid_t> process_of_temporary_file(const fs::path& path) {
    const std::string whole = path.filename().string();
    std::string_view name = whole;
    if (!name.starts_with('.') || !name.ends_with(".tmp")) return std::nullopt;
    name.remove_suffix(4);
    const size_t dash = name.rfind('-'), dot = name.rfind('.', dash);
    if (dash == std::string_view::npos || dot == std::string_view::npos || dot == 0) return std::nullopt;
    const auto is_number = [](std::string_view text) {
        return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
    };
    const std::string_view process = name.substr(dot + 1, dash - dot - 1);
    if (!is_number(process) || !is_number(name.substr(dash + 1))) return std::nullopt;
    pid_t number = 0;
    const auto read = std::from_chars(process.data(), process.data() + process.size(), number);
    return read.ec == std::errc() && number > 0 ? std::optional(number) : std::nullopt;
}

bool is_running(pid_t process) { return ::kill(process, 0) == 0 || errno == EPERM; }

void find_in_folder(const fs::path& folder, std::vector<Leftover>& found) {
    for (const auto& entry : fs::directory_iterator(folder)) {
        std::error_code error;
        if (is_unfinished_trace(entry.path())) {
            found.push_back({entry.path(), "unfinished trace", obstacle_of(entry.path())});
        } else if (const auto process = process_of_temporary_file(entry.path());
                   process && fs::is_regular_file(entry.symlink_status(error))) {
            found.push_back({entry.path(), "temporary file", is_running(*process) ? "in use" : ""});
        }
    }
}

/// Finds numbers that kvscope computes again when it needs them.
void find_in_cache(std::vector<Leftover>& found) {
    const fs::path cache = user_cache_folder();
    if (cache.empty()) return;
    for (const char* part : {"calibration", "fingerprints", "modes", "spectra"}) {
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(cache / part, error))
            found.push_back({entry.path(), "cache entry"});
    }
}

std::vector<Leftover> find_leftovers(const Arguments& arguments) {
    std::vector<Leftover> found;
    for (const fs::path& folder : arguments.folders) {
        std::error_code error;
        if (!fs::is_directory(folder, error))
            throw std::invalid_argument(folder.string() + ": expected a folder, found " +
                                        (fs::exists(folder, error) ? "a file" : "nothing"));
        find_in_folder(folder, found);
    }
    if (arguments.with_cache) find_in_cache(found);
    for (Leftover& leftover : found) measure(leftover);
    std::erase_if(found, [&](const Leftover& one) { return one.days < arguments.older_than_days; });
    std::ranges::sort(found, {}, &Leftover::path);
    return found;
}

/// Removes what was found. A problem becomes the obstacle.
void remove(Leftover& leftover) {
    if (!leftover.obstacle.empty()) return;
    try {
        if (is_real_folder(leftover.path)) {
            const trace::FolderLock held(leftover.path);
            trace::remove_folder(leftover.path);
        } else {
            fs::remove(leftover.path);
        }
    } catch (const std::exception& error) {
        leftover.obstacle = error.what();
    }
}

std::string days_text(double days) {
    return days == std::floor(days) ? counted(static_cast<int64_t>(days), "day") : fmt::format("{} days", days);
}

/// Returns an age for people: "9 s", "12 min", "5 h" or "7 days".
std::string age_text(double days) {
    const double seconds = std::max(days * 86400, 0.0);
    if (seconds < 60) return fmt::format("{:.0f} s", std::floor(seconds));
    if (seconds < 3600) return fmt::format("{:.0f} min", std::floor(seconds / 60));
    if (days < 2) return fmt::format("{:.0f} h", std::floor(seconds / 3600));
    return fmt::format("{:.0f} days", std::floor(days));
}

analysis::Table table_of(const std::vector<Leftover>& leftovers, bool are_removed) {
    analysis::Table table{"leftovers",
                          "Leftovers",
                          {{"path", "Path", ""},
                           {"kind", "Kind", ""},
                           {"bytes", "Size", "bytes", analysis::ColumnType::integer},
                           {"days", "Age", "days", analysis::ColumnType::real, 1},
                           {"state", "State", ""}},
                          {}};
    for (const Leftover& one : leftovers) {
        const std::string state = !one.obstacle.empty() ? "kept: " + one.obstacle
                                  : are_removed         ? "removed"
                                                        : "removable";
        table.rows.push_back({{one.path.string(), one.kind, static_cast<int64_t>(one.bytes), one.days, state}});
    }
    constexpr size_t age = 3;
    analysis::Table readable = table;
    readable.columns[age] = {"age", "Age", ""};
    for (size_t i = 0; i < leftovers.size(); ++i) readable.rows[i].cells[age] = age_text(leftovers[i].days);
    table.for_people = {std::move(readable)};
    return table;
}

int act(const Arguments& arguments) {
    std::vector<Leftover> found = find_leftovers(arguments);
    const auto was_in_use = std::ranges::count_if(found, [](const auto& one) { return !one.obstacle.empty(); });
    double bytes = 0;
    if (arguments.remove) std::ranges::for_each(found, remove);
    for (const Leftover& one : found)
        if (one.obstacle.empty()) bytes += static_cast<double>(one.bytes);
    const auto n_kept = std::ranges::count_if(found, [](const auto& one) { return !one.obstacle.empty(); });
    const size_t n = found.size() - static_cast<size_t>(n_kept);
    if (!arguments.format.is_text() || !found.empty()) arguments.format.print(table_of(found, arguments.remove));
    if (found.empty())
        print_to_stderr(arguments.older_than_days == 0
                            ? std::string("nothing to remove")
                            : "nothing to remove is older than " + days_text(arguments.older_than_days));
    else if (arguments.remove)
        print_to_stderr(fmt::format("{} removed: {}", n, analysis::format_bytes(bytes)));
    else
        print_to_stderr(
            fmt::format("{} removable: {}. Nothing was removed; --remove removes them. Removing an unfinished trace "
                        "deletes its finished runs",
                        n, analysis::format_bytes(bytes)));
    return n_kept > was_in_use ? 1 : 0;
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    app.add_option("folders", arguments->folders, "Folders with traces; folders inside them are not searched")
        ->type_name("FOLDER")
        ->default_str(".");
    app.add_option("--older-than", arguments->older_than_days,
                   "List only what has not changed for this many days; processes on other machines are not seen")
        ->check(RealNumber(0, 1e6))
        ->type_name("DAYS")
        ->capture_default_str();
    app.add_flag("--cache", arguments->with_cache,
                 "Also list kvscope's cache of numbers that take long to compute, such as fingerprints of models");
    app.add_flag("--remove", arguments->remove, "Remove what is listed as removable");
    arguments->format.declare(app);
    return [arguments] { return act(*arguments); };
}

}  // namespace
}  // namespace kvscope::cli::clean_file

namespace kvscope::cli {

Command clean_command() {
    return {"clean", "List or remove unfinished traces, temporary files of ended processes, and cache entries",
            "  kvscope clean results --older-than 7\n"
            "  kvscope clean results --older-than 7 --remove",
            clean_file::declare};
}

}  // namespace kvscope::cli
