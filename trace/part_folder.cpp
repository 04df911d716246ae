#include "trace/part_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>
#include <vector>

#include "common/bounded_json.h"
#include "common/file_text.h"
#include "common/json.h"
#include "common/whole_file.h"
#include "trace/hdf5/input_file.h"
#include "trace/hdf5/output_file.h"
#include "trace/records/storable_text.h"

namespace kvscope::trace {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view record_name = "trace.json";
constexpr std::string_view lock_name = "lock";
constexpr std::string_view part_suffix = ".h5";
constexpr std::string_view folder_suffix = ".part";
constexpr std::string_view temporary_suffix = ".tmp";
constexpr std::string_view damaged_infix = ".damaged-";
constexpr std::uintmax_t largest_record = std::uintmax_t{1} << 30;

std::optional<int> number(std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
    return value;
}

std::optional<std::string> read_file(const fs::path& path) {
    try {
        return file_text(path);
    } catch (const std::system_error& error) {
        if (error.code() == std::errc::no_such_file_or_directory) return std::nullopt;
        throw ReadFailed(fmt::format("cannot read {}: {}", path.string(), error.code().message()));
    }
}

void add_part(Parts& parts, std::string_view stem) {
    const std::size_t last = stem.rfind('-');
    if (stem == "model") {
        parts.model = true;
    } else if (last == std::string_view::npos) {
        return;
    } else if (const auto final_number = number(stem.substr(last + 1))) {
        const std::string_view head = stem.substr(0, last);
        if (head == "prompt") {
            parts.prompts.insert(*final_number);
        } else if (head.starts_with("run-")) {
            if (const auto prompt = number(head.substr(4))) parts.runs[*prompt].insert(*final_number);
        } else if (head.starts_with("results-")) {
            parts.results[std::string(head.substr(8))].insert(*final_number);
        }
    }
}

/// Whether the folder is empty or contains only the lock, as after an interrupted removal.
bool is_emptied(const fs::path& folder) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
        if (entry->path().filename() != lock_name) return false;
    return true;
}

}  // namespace

fs::path resolve_output_links(const fs::path& output) {
    std::error_code error;
    const bool is_link = fs::is_symlink(output, error) && fs::is_regular_file(output, error);
    const fs::path file = is_link ? fs::canonical(output, error) : output;
    return error ? output : file;
}

fs::path part_folder_of(const fs::path& output) {
    fs::path folder = resolve_output_links(output);
    folder += folder_suffix;
    return folder;
}

std::optional<fs::path> find_joined_trace(const fs::path& folder) {
    if (folder.extension() != folder_suffix) return std::nullopt;
    std::error_code error;
    if (fs::exists(folder, error)) {
        const auto root = read_folder_record(folder);
        if (root && !root->complete) return std::nullopt;
        if (!root && !is_emptied(folder)) return std::nullopt;
    }
    fs::path output = folder;
    output.replace_extension();
    if (!fs::is_regular_file(output, error)) return std::nullopt;
    return output;
}

std::string part_file_name_of_base_trace() { return "base.h5"; }
std::string part_file_name_of_model() { return "model.h5"; }
std::string part_file_name_of_prompt(int prompt) { return fmt::format("prompt-{}.h5", prompt); }
std::string part_file_name_of_run(int prompt, int run) { return fmt::format("run-{}-{}.h5", prompt, run); }
std::string part_file_name_of_results(std::string_view task, int batch) {
    return fmt::format("results-{}-{}.h5", task, batch);
}

fs::path file_of_run(const fs::path& folder, int prompt, int run) {
    std::error_code error;
    const fs::path own = folder / part_file_name_of_run(prompt, run), base = folder / part_file_name_of_base_trace();
    return !fs::exists(own, error) && fs::exists(base, error) ? base : own;
}

Parts list_parts(const fs::path& folder) {
    Parts parts;
    for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (std::string_view(name).ends_with(part_suffix)) {
            add_part(parts, std::string_view(name).substr(0, name.size() - part_suffix.size()));
        }
    }
    return parts;
}

h5::Handle open_part(const fs::path& part) {
    return h5::with_place_in_errors(part.string(), [&] { return open_input_file(part); });
}

std::string set_damaged_part_aside(const fs::path& part, const std::string& reason) {
    fs::path aside;
    struct stat found {};
    for (int i = 1; i == 1 || ::lstat(aside.c_str(), &found) == 0; ++i) {
        aside = part;
        aside.replace_extension();
        aside += fmt::format("{}{}", damaged_infix, i);
    }
    if (::rename(part.c_str(), aside.c_str()) != 0) {
        throw WriteFailed(fmt::format("{} is damaged ({}) and cannot be renamed to {}: {}", part.string(), reason,
                                      aside.filename().string(), std::strerror(errno)));
    }
    sync_folder(part.parent_path());
    return fmt::format("{} is damaged ({}) and will be made again; the damaged file was renamed to {}", part.string(),
                       reason, aside.filename().string());
}

bool is_damaged_part_set_aside(const fs::path& file) {
    const std::string name = file.filename().string();
    const std::size_t at = name.rfind(damaged_infix);
    return at != std::string::npos && number(std::string_view(name).substr(at + damaged_infix.size()));
}

void require_readable_version(const fs::path& file, const std::string& format, const std::string& version) {
    if (format != schema::format) {
        throw NotATrace(fmt::format("{}: expected the format \"{}\", found {}: the file is not a kvscope trace",
                                    file.string(), schema::format, quoted_text(format)));
    }
    const std::size_t point = version.find('.');
    const auto major = number(std::string_view(version).substr(0, point));
    if (!major) {
        throw DamagedTrace(fmt::format("{}: expected a version like {}, found {}", file.string(), schema::version,
                                       quoted_text(version)));
    }
    if (*major > schema::version_major) {
        throw TraceTooNew(fmt::format(
            "{}: the trace has version {}, but this build of kvscope reads versions up to {}.x; open it with a "
            "newer kvscope",
            file.string(), storable_text(version), schema::version_major));
    }
}

std::optional<RootAttributes> read_folder_record(const fs::path& folder) {
    const fs::path path = folder / record_name;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::is_other(status)) throw DamagedTrace(fmt::format("{}: expected a file", path.string()));
    if (const auto bytes = fs::file_size(path, error); !error && bytes > largest_record)
        throw DamagedTrace(
            fmt::format("{}: expected at most {} bytes, found {}", path.string(), largest_record, bytes));
    const std::optional<std::string> text = read_file(path);
    if (!text) return std::nullopt;
    const auto json = bounded_json::parse_or_discard(*text);
    if (!json.is_object()) throw DamagedTrace(fmt::format("{}: expected a JSON object", path.string()));
    const auto get = [&](const char* name) {
        const auto found = json.find(name);
        if (found == json.end() || !found->is_string()) {
            throw DamagedTrace(fmt::format("{}: expected a text \"{}\"", path.string(), name));
        }
        return found->get<std::string>();
    };
    require_readable_version(path, get("format"), get("version"));
    RootAttributes root;
    root.generator = get("generator");
    root.created_utc = get("created_utc");
    root.recipe_json = get("recipe_json");
    root.complete = json.value("complete", nlohmann::ordered_json(false)) == true;
    return root;
}

void write_folder_record(const fs::path& folder, const RootAttributes& root) {
    const nlohmann::ordered_json json = {{"format", schema::format},        {"version", schema::version},
                                         {"generator", root.generator},     {"created_utc", root.created_utc},
                                         {"recipe_json", root.recipe_json}, {"complete", root.complete}};
    write_small_file_atomically(folder / record_name, json.dump(2) + "\n");
}

void link_or_copy_base_trace(const fs::path& folder, const fs::path& trace) {
    const fs::path base = folder / part_file_name_of_base_trace();
    const auto refuse = [&](const std::string& why) {
        throw WriteFailed(fmt::format("cannot write {}: {}", base.string(), why));
    };
    std::error_code error;
    fs::remove(base, error);
    const fs::path file = fs::canonical(trace, error);
    if (!error && ::link(file.c_str(), base.c_str()) == 0) return sync_folder(folder);
    try {
        TemporaryFile copy(base);
        fs::copy_file(trace, copy.path(), fs::copy_options::overwrite_existing);
        copy.move_into_place(true);
    } catch (const FileNotWritten& failed) {
        refuse(std::strerror(failed.error));
    } catch (const fs::filesystem_error& failed) {
        refuse(failed.code().message());
    }
    sync_folder(folder);
}

void remove_temporary_files(const fs::path& folder) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (std::string_view(entry.path().native()).ends_with(temporary_suffix)) found.push_back(entry.path());
    }
    for (const fs::path& path : found) fs::remove(path);
}

std::string foreign_entry(const fs::path& folder) {
    for (const auto& entry : fs::directory_iterator(folder)) {
        std::string name = entry.path().filename().string();
        if (name == lock_name) continue;
        const bool ours = name == record_name || name == answers_name || std::string_view(name).ends_with(".h5") ||
                          std::string_view(name).ends_with(".tmp") || is_damaged_part_set_aside(entry.path());
        if (!ours || !entry.is_regular_file()) return name;
    }
    return {};
}

void remove_folder(const fs::path& folder) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (name != record_name && name != lock_name) found.push_back(entry.path());
    }
    for (const fs::path& path : found) fs::remove(path);
    fs::remove(folder / record_name);
    fs::remove(folder / lock_name);
    fs::remove(folder);
}

FolderLock::FolderLock(const fs::path& folder) {
    const fs::path path = folder / lock_name;
    for (;;) {
        descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (descriptor_ < 0) {
            throw WriteFailed(fmt::format("cannot create {}: {}", path.string(), std::strerror(errno)));
        }
        if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
            const int error = errno;
            if (error == EWOULDBLOCK) {
                ::close(std::exchange(descriptor_, -1));
                throw OutputBusy(fmt::format(
                    "{}: another kvscope is writing this output; wait until it ends, or choose another output",
                    folder.string()));
            }
            // Some cluster file systems have no locks, so other processes cannot be excluded.
            return;
        }
        // The previous holder of the lock may have removed the lock file or its folder after open().
        struct stat opened {};
        struct stat named {};
        if (::fstat(descriptor_, &opened) == 0 && ::stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino) {
            return;
        }
        ::close(std::exchange(descriptor_, -1));
    }
}

FolderLock::~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace kvscope::trace
