#include "trace/group_locations.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string_view>

#include "trace/hdf5/input_file.h"
#include "trace/part_folder.h"

namespace kvscope::trace {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t open_files_kept = 16;
constexpr std::uintmax_t superblock_bytes = 48;

bool is_workspace(const fs::path& path) {
    constexpr std::string_view zip = "PK\3\4";
    std::string begin(zip.size(), '\0');
    return path.extension() == ".kvscope" &&
           std::ifstream(path, std::ios::binary).read(begin.data(), static_cast<std::streamsize>(begin.size())) &&
           begin == zip;
}

h5::Handle open_checked(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::none || status.type() == fs::file_type::unknown) {
        throw ReadFailed(fmt::format("cannot read {}: {}", path.string(), error.message()));
    }
    if (!fs::exists(status)) throw NotATrace(fmt::format("{} does not exist", path.string()));
    if (!fs::is_regular_file(status)) throw NotATrace(fmt::format("{}: expected a trace file", path.string()));
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) throw ReadFailed(fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
    ::close(descriptor);

    const htri_t is_hdf5 = H5Fis_hdf5(path.c_str());
    if (is_hdf5 < 0) throw ReadFailed(fmt::format("cannot read {}: HDF5 could not open it", path.string()));
    if (is_hdf5 == 0) {
        if (is_workspace(path))
            throw NotATrace(
                fmt::format("{}: the file is a workspace, not a trace; open it with `kvscope view`", path.string()));
        throw NotATrace(fmt::format("{}: expected an HDF5 file written by kvscope, found something else ({} bytes)",
                                    path.string(), fs::file_size(path, error)));
    }
    try {
        return open_input_file(path);
    } catch (const h5::Failure& failure) {
        const bool is_short = failure.truncated || fs::file_size(path, error) < superblock_bytes;
        if (is_short && failure.system_error == 0) {
            throw TruncatedTrace(
                fmt::format("{}: the file is incomplete, probably because it was copied only in part ({} bytes exist); "
                            "copy it again, or make the trace again",
                            path.string(), fs::file_size(path, error)));
        }
        h5::throw_unreadable(path.string(), failure);
    }
}

std::optional<int> number(const std::string& name) {
    int value = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
    if (error != std::errc{} || end != name.data() + name.size() || value < 0 || name != std::to_string(value)) {
        return std::nullopt;
    }
    return value;
}

std::vector<GroupPlace> numbered_groups(hid_t file, const fs::path& path, const std::string& parent) {
    std::vector<GroupPlace> out;
    if (!h5::is_group(file, parent)) return out;
    for (const std::string& name : h5::members(file, parent)) {
        const std::string group = parent + "/" + name;
        if (const auto n = number(name); n && h5::is_group(file, group)) out.push_back({path, group, *n});
    }
    return out;
}

}  // namespace

std::optional<std::string> read_root_text_attribute(hid_t file, const std::string& name) {
    const auto value = h5::read_attribute(file, name);
    if (!value || value->kind != h5::Value::Kind::text || value->texts.size() != 1) return std::nullopt;
    return value->texts.front();
}

Source::Source(fs::path given) : path(std::move(given)) {
    std::error_code error;
    if (!fs::exists(path, error) && fs::is_directory(part_folder_of(path), error)) path = part_folder_of(path);
    is_folder = fs::is_directory(path, error);
    try {
        is_folder ? find_in_folder() : find_in_file();
    } catch (const h5::Failure& failure) {
        h5::throw_unreadable(path.string(), failure);
    } catch (const fs::filesystem_error& failure) {
        throw ReadFailed(fmt::format("cannot read {}: {}", path.string(), failure.code().message()));
    }
}

void Source::find_in_file() {
    const hid_t file = open(path).get();
    root.generator = read_root_text_attribute(file, "generator").value_or("");
    root.created_utc = read_root_text_attribute(file, "created_utc").value_or("");
    root.recipe_json = read_root_text_attribute(file, "recipe_json").value_or("");
    const auto complete = h5::read_attribute(file, "complete");
    root.complete = complete && complete->reals.size() == 1 && complete->reals.front() == 1;
    find_groups(path);
}

void Source::find_groups(const fs::path& in) {
    const hid_t file = open(in).get();
    if (h5::is_group(file, "/model")) model = GroupPlace{in, "/model"};
    for (const GroupPlace& prompt : numbered_groups(file, in, "/prompts")) {
        prompts.push_back({prompt, numbered_groups(file, in, prompt.group + "/runs")});
    }
    if (h5::is_group(file, "/results")) {
        for (const std::string& task : h5::members(file, "/results")) {
            const std::string table = "/results/" + task;
            if (h5::exists(file, table) && !h5::is_group(file, table)) results[task].push_back({in, table});
        }
    }
}

void Source::find_in_folder() {
    const auto record = read_folder_record(path);
    if (!record) {
        throw NotATrace(
            fmt::format("{}: expected a trace file or the .part folder of an unfinished trace, found "
                        "a folder without trace.json",
                        path.string()));
    }
    root = *record;
    version = schema::version;
    std::error_code error;
    if (fs::exists(path / part_file_name_of_base_trace(), error)) {
        base = path / part_file_name_of_base_trace();
        find_groups(*base);
    }
    const Parts parts = list_parts(path);
    if (parts.model) model = GroupPlace{path / part_file_name_of_model(), "/model"};
    for (const int prompt : parts.prompts) {
        PromptPlace place;
        place.file = path / part_file_name_of_prompt(prompt);
        place.group = fmt::format("/prompts/{}", prompt);
        place.number = prompt;
        prompts.push_back(std::move(place));
    }
    for (PromptPlace& place : prompts) {
        const auto runs = parts.runs.find(place.number);
        if (runs == parts.runs.end()) continue;
        for (const int run : runs->second) {
            place.runs.push_back(
                {path / part_file_name_of_run(place.number, run), fmt::format("{}/runs/{}", place.group, run), run});
        }
    }
    for (const auto& [task, batches] : parts.results) {
        results[task].clear();  // results of the base, which the parts replace
        for (const int batch : batches) {
            results[task].push_back({path / part_file_name_of_results(task, batch), "/results/" + task, batch});
        }
    }
}

const h5::Handle& Source::open(const fs::path& file) {
    const auto found =
        std::find_if(open_files_.begin(), open_files_.end(), [&](const auto& entry) { return entry.first == file; });
    if (found != open_files_.end()) return found->second;
    h5::Handle handle = open_checked(file);
    const std::string format = read_root_text_attribute(handle.get(), "format").value_or("");
    const std::string found_version = read_root_text_attribute(handle.get(), "version").value_or("");
    require_readable_version(file, format, found_version);
    if (!is_folder) version = found_version;
    if (open_files_.size() == open_files_kept) open_files_.pop_front();
    return open_files_.emplace_back(file, std::move(handle)).second;
}

}  // namespace kvscope::trace
