#include "app/gui/session/workspace_file.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>

#include "app/gui/session/whole_path.h"
#include "common/bounded_json.h"
#include "common/json.h"
#include "common/whole_file.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;

constexpr const char* state_name = "workspace.json";
constexpr int version = 1;
constexpr size_t longest_state = size_t{64} << 20;
/// Suffix of folders that are being unpacked, followed by the process id.
constexpr const char* new_mark = ".new-";

struct LaterWorkspace : WorkspaceError {
    using WorkspaceError::WorkspaceError;
};

struct FreeWriter {
    void operator()(archive* a) const { archive_write_free(a); }
};
struct FreeReader {
    void operator()(archive* a) const { archive_read_free(a); }
};
struct FreeEntry {
    void operator()(archive_entry* e) const { archive_entry_free(e); }
};

/// Sets the thread's locale to UTF-8. libarchive converts names between UTF-8 and this locale.
class Utf8Locale {
 public:
    Utf8Locale() : locale_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", locale_t{})) {
        if (locale_ != locale_t{}) before_ = ::uselocale(locale_);
    }
    ~Utf8Locale() {
        if (locale_ == locale_t{}) return;
        ::uselocale(before_);
        ::freelocale(locale_);
    }
    Utf8Locale(const Utf8Locale&) = delete;
    Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
    locale_t locale_, before_{};
};

void check(int code, archive* a, const fs::path& path, const char* doing) {
    if (code >= ARCHIVE_WARN) return;
    const char* why = archive_error_string(a);
    throw WorkspaceError(fmt::format("{}: {} failed: {}", path.string(), doing, why ? why : "no reason given"));
}

class Writer {
 public:
    explicit Writer(fs::path path) : path_(std::move(path)), archive_(archive_write_new()) {
        check(archive_write_set_format_zip(archive_.get()), archive_.get(), path_, "writing");
        check(archive_write_set_options(archive_.get(), "compression=store"), archive_.get(), path_, "writing");
        check(archive_write_open_filename(archive_.get(), path_.c_str()), archive_.get(), path_, "opening");
    }

    void begin(const std::string& name, uint64_t bytes) {
        const std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
        archive_entry_set_pathname_utf8(entry.get(), name.c_str());
        archive_entry_set_size(entry.get(), static_cast<int64_t>(bytes));
        archive_entry_set_filetype(entry.get(), AE_IFREG);
        archive_entry_set_perm(entry.get(), 0644);
        check(archive_write_header(archive_.get(), entry.get()), archive_.get(), path_, "writing");
    }

    void put(const void* data, size_t bytes) {
        if (archive_write_data(archive_.get(), data, bytes) != static_cast<la_ssize_t>(bytes))
            check(ARCHIVE_FATAL, archive_.get(), path_, "writing");
    }

    void finish() { check(archive_write_close(archive_.get()), archive_.get(), path_, "writing"); }

 private:
    Utf8Locale locale_;
    fs::path path_;
    std::unique_ptr<archive, FreeWriter> archive_;
};

void put_file(Writer& writer, const fs::path& path, const std::string& name, uint64_t bytes) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw WorkspaceError(path.string() + " cannot be read");
    writer.begin(name, bytes);
    std::vector<char> block(1 << 20);
    while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0)
        writer.put(block.data(), static_cast<size_t>(file.gcount()));
}

uint64_t fnv1a(const std::string& bytes) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    return hash;
}

class Reader {
 public:
    explicit Reader(const fs::path& path) : path_(path), zip_(archive_read_new()) {
        std::error_code error;
        if (!fs::is_regular_file(path, error))
            throw WorkspaceError(path.string() + " cannot be read: it is not a regular file");
        archive_read_support_format_zip(zip_.get());
        check(archive_read_open_filename(zip_.get(), path.c_str(), 1 << 20), zip_.get(), path, "opening");
    }

    bool next() {
        const int code = archive_read_next_header(zip_.get(), &entry_);
        if (code == ARCHIVE_EOF) return false;
        check(code, zip_.get(), path_, "reading");
        const char* name = archive_entry_pathname(entry_);
        if (name == nullptr) throw WorkspaceError(path_.string() + ": the name of a file in it cannot be read");
        name_ = name;
        return true;
    }

    const std::string& name() const { return name_; }
    bool is_file() const {
        return archive_entry_filetype(entry_) == AE_IFREG && archive_entry_symlink(entry_) == nullptr &&
               archive_entry_hardlink(entry_) == nullptr;
    }
    std::optional<uint64_t> bytes() const {
        if (!archive_entry_size_is_set(entry_) || archive_entry_size(entry_) < 0) return std::nullopt;
        return static_cast<uint64_t>(archive_entry_size(entry_));
    }

    /// Passes the contents of the entry to `take` in blocks. Throws WorkspaceError if there are more than `most` bytes.
    template <class Take>
    void read(uint64_t most, Take take) {
        std::vector<char> block(1 << 20);
        for (uint64_t total = 0;;) {
            const auto got = archive_read_data(zip_.get(), block.data(), block.size());
            if (got < 0) {
                std::string why =
                    archive_error_string(zip_.get()) ? archive_error_string(zip_.get()) : "no reason given";
                while (why.ends_with('\n')) why.pop_back();
                refuse("it cannot be read: " + why);
            }
            if (got == 0) return;
            total += static_cast<uint64_t>(got);
            if (total > most) refuse(fmt::format("expected at most {} bytes, found more", most));
            take(std::string_view(block.data(), static_cast<size_t>(got)));
        }
    }

    [[noreturn]] void refuse(const std::string& why) const {
        throw WorkspaceError(fmt::format("{}: file {:?}: {}", path_.string(), name_, why));
    }

 private:
    Utf8Locale locale_;
    fs::path path_;
    std::unique_ptr<archive, FreeReader> zip_;
    archive_entry* entry_ = nullptr;
    std::string name_;
};

nlohmann::json read_state(const fs::path& path) {
    nlohmann::json state;
    Reader reader(path);
    while (state.is_null() && reader.next()) {
        if (reader.name() != state_name) continue;
        if (!reader.is_file()) reader.refuse("expected a file, found a folder or a link");
        std::string whole;
        reader.read(longest_state, [&](std::string_view block) { whole += block; });
        state = bounded_json::parse_or_discard(whole);
    }
    if (!state.is_object() || !state.contains("kvscope_workspace"))
        throw WorkspaceError(path.string() + " is not a kvscope workspace: expected a ZIP archive with workspace.json");
    const auto& found = state["kvscope_workspace"];
    if (!found.is_number())
        throw WorkspaceError(path.string() + " is damaged: the version in its workspace.json is not a number");
    if (found.get<double>() >= version + 1) {
        throw LaterWorkspace(fmt::format(
            "{} is a workspace of version {}, but this program reads versions up to {}: use a later kvscope",
            path.string(), found.dump(), version));
    }
    return state;
}

/// A file that workspace.json lists. Workspaces of earlier versions do not list sizes.
struct Listed {
    std::optional<uint64_t> bytes;
    bool is_found = false;
};

bool is_plain_name(const std::string& name) {
    return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
           name.find('\0') == std::string::npos;
}

class Manifest {
 public:
    Manifest(const fs::path& path, const nlohmann::json& state) : path_(path) {
        const auto session = state.find("session");
        if (session != state.end() && session->is_object())
            for (const auto& trace : session->value("traces", nlohmann::json::array()))
                if (trace.is_object() && trace.contains("path") && trace["path"].is_string())
                    traces_.push_back(plain(trace["path"].get<std::string>()));
        const auto files = state.find("files");
        has_files_ = files != state.end();
        if (!has_files_) return;
        for (const auto& file : files->is_array() ? *files : nlohmann::json::array()) {
            if (!file.is_object() || !file.contains("name") || !file["name"].is_string() || !file.contains("bytes") ||
                !file["bytes"].is_number_unsigned())
                throw WorkspaceError(path.string() +
                                     " is damaged: its workspace.json lists a file without a name or size");
            if (!files_.emplace(plain(file["name"].get<std::string>()), Listed{file["bytes"].get<uint64_t>()}).second)
                throw WorkspaceError(fmt::format("{} is damaged: its workspace.json lists {:?} twice", path.string(),
                                                 file["name"].get<std::string>()));
        }
    }

    Listed* find(const std::string& name) {
        const auto found = files_.find(name);
        if (found != files_.end()) return &found->second;
        const auto belongs = [&](const std::string& trace) {
            return name == trace || name.starts_with(trace + ".notes.");
        };
        if (has_files_ || !std::ranges::any_of(traces_, belongs)) return nullptr;
        return &files_[name];
    }

    void require_all_found() const {
        for (const auto& [name, listed] : files_)
            if (!listed.is_found)
                throw WorkspaceError(fmt::format("{} is damaged: its workspace.json lists {:?}, which is missing",
                                                 path_.string(), name));
    }

 private:
    std::string plain(const std::string& name) const {
        if (is_plain_name(name)) return name;
        throw WorkspaceError(
            fmt::format("{}: the name {:?} in its workspace.json leads out of its folder", path_.string(), name));
    }

    fs::path path_;
    std::vector<std::string> traces_;
    bool has_files_ = false;
    std::map<std::string, Listed> files_;
};

/// Returns the sizes of an archive's files by name. Throws WorkspaceError unless workspace.json lists the same files.
std::map<std::string, uint64_t> files_of(const fs::path& path, const nlohmann::json& state) {
    Manifest manifest(path, state);
    std::map<std::string, uint64_t> files;
    bool has_state = false;
    uint64_t total = 0;
    Reader reader(path);
    while (reader.next()) {
        if (reader.name() == state_name) {
            if (std::exchange(has_state, true)) reader.refuse("it occurs twice");
            continue;
        }
        if (!is_plain_name(reader.name())) reader.refuse("the name leads out of the workspace's folder");
        if (!reader.is_file()) reader.refuse("expected a file, found a folder or a link");
        Listed* listed = manifest.find(reader.name());
        if (listed == nullptr) reader.refuse("workspace.json does not list it");
        if (std::exchange(listed->is_found, true)) reader.refuse("it occurs twice");
        const auto bytes = reader.bytes();
        if (!bytes) reader.refuse("its size is not given");
        if (listed->bytes && *listed->bytes != *bytes)
            reader.refuse(fmt::format("workspace.json lists {} bytes, but the archive has {}", *listed->bytes, *bytes));
        files[reader.name()] = *bytes;
        total = total > UINT64_MAX - *bytes ? UINT64_MAX : total + *bytes;
    }
    manifest.require_all_found();
    // kvscope stores files uncompressed. Compressed files could unpack to any size.
    std::error_code error;
    const uint64_t size = fs::file_size(path, error);
    if (total > size)
        throw WorkspaceError(
            fmt::format("{}: expected uncompressed files, found files of {} bytes in an "
                        "archive of {} bytes. If you trust it, unpack it with another program and open "
                        "its traces.",
                        path.string(), total, size));
    return files;
}

/// Modification time of unpacked files. A file that was written later has another time.
constexpr timespec unpacked_time{.tv_sec = 315532800, .tv_nsec = 0};  // 1980, where ZIP time stamps start

bool is_as_unpacked(const fs::path& file) {
    struct stat found {};
    return ::lstat(file.c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
           found.st_mtim.tv_sec == unpacked_time.tv_sec && found.st_mtim.tv_nsec == unpacked_time.tv_nsec;
}

void unpack(const fs::path& path, const std::map<std::string, uint64_t>& wanted, const fs::path& folder) {
    Reader reader(path);
    while (reader.next()) {
        const auto one = wanted.find(reader.name());
        if (one == wanted.end()) continue;
        const fs::path target = folder / one->first;
        std::ofstream file(target, std::ios::binary);
        uint64_t total = 0;
        reader.read(one->second, [&](std::string_view block) {
            total += block.size();
            file.write(block.data(), static_cast<std::streamsize>(block.size()));
        });
        if (total != one->second) reader.refuse(fmt::format("expected {} bytes, found {}", one->second, total));
        file.close();
        const timespec times[] = {unpacked_time, unpacked_time};
        if (!file || ::utimensat(AT_FDCWD, target.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
            reader.refuse(fmt::format("it cannot be written to {}: is the disk full?", folder.string()));
    }
}

/// Throws WorkspaceError if the file is a workspace of a later version. Any other file may be overwritten.
void require_no_later_one(const fs::path& path) {
    std::error_code error;
    if (!fs::exists(path, error)) return;
    try {
        read_state(path);
    } catch (const LaterWorkspace&) {
        throw WorkspaceError(
            path.string() +
            " was saved by a later kvscope, and this version would lose some of its contents: choose another name");
    } catch (const WorkspaceError&) {
        // The user has agreed to replace the file.
    }
}

}  // namespace

void write_workspace(const fs::path& path, const nlohmann::json& state,
                     const std::vector<std::pair<fs::path, std::string>>& files) {
    require_no_later_one(path);
    std::error_code error;
    try {
        TemporaryFile beside(path);
        Writer writer(beside.path());
        nlohmann::json described = state;
        described.emplace("kvscope_workspace", version);
        described["files"] = nlohmann::json::array();
        for (const auto& [file, name] : files) {
            const uint64_t bytes = fs::file_size(file, error);
            if (error) throw WorkspaceError(file.string() + " cannot be read: " + error.message());
            described["files"].push_back({{"name", name}, {"bytes", bytes}});
        }
        const std::string text = described.dump(1);
        writer.begin(state_name, text.size());
        writer.put(text.data(), text.size());
        for (size_t i = 0; i < files.size(); ++i)
            put_file(writer, files[i].first, files[i].second, described["files"][i]["bytes"].get<uint64_t>());
        writer.finish();
        beside.move_into_place(true);
    } catch (const nlohmann::json::type_error&) {
        throw WorkspaceError("the file name of a trace is not UTF-8: rename it, so that other machines can read it");
    } catch (const FileNotWritten& failed) {
        throw WorkspaceError(path.string() + " cannot be written: " + std::strerror(failed.error));
    }
}

std::string unpacking_folder_name(const fs::path& path) {
    // A ZIP archive ends with a list of its files and their checksums.
    constexpr std::streamoff most = 1 << 16;
    std::error_code error;
    std::ifstream file;
    if (fs::is_regular_file(path, error)) file.open(path, std::ios::binary | std::ios::ate);
    if (!file.is_open())
        throw WorkspaceError(path.string() +
                             (fs::exists(path, error)
                                  ? "  cannot be read: it is not a regular file, or you lack the permission"
                                  : " does not exist"));
    const std::streamoff bytes = file.tellg();
    file.seekg(std::max<std::streamoff>(bytes - most, 0));
    const std::string end{std::istreambuf_iterator<char>(file), {}};
    const fs::path whole = fs::weakly_canonical(absolute_path(path), error);
    return fmt::format("{}-{:016x}", path.stem().string(), fnv1a(fmt::format("{}\n{}\n", whole.string(), bytes) + end));
}

FolderInUse::FolderInUse(const fs::path& folder)
    : file_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {
    if (file_ >= 0) ::flock(file_, LOCK_SH);
}

FolderInUse::~FolderInUse() {
    if (file_ >= 0) ::close(file_);
}

void remove_unpacked_workspaces(const fs::path& folder) {
    const auto is_left_over = [](const std::string& name) {
        const size_t at = name.rfind(new_mark);
        return at != std::string::npos &&
               name.find_first_not_of("0123456789", at + std::string_view(new_mark).size()) == std::string::npos;
    };
    std::error_code error, ignored;
    std::vector<fs::path> folders;
    for (auto one = fs::directory_iterator(folder, error); !error && one != fs::directory_iterator();
         one.increment(error))
        if (one->symlink_status(ignored).type() == fs::file_type::directory) folders.push_back(one->path());
    for (const fs::path& one : folders) {
        const int file = ::open(one.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (file < 0) continue;
        if (::flock(file, LOCK_EX | LOCK_NB) == 0) {
            if (is_left_over(one.filename().string())) {
                fs::remove_all(one, ignored);
            } else {
                std::vector<fs::path> unpacked;
                for (auto inner = fs::directory_iterator(one, error); !error && inner != fs::directory_iterator();
                     inner.increment(error))
                    if (is_as_unpacked(inner->path())) unpacked.push_back(inner->path());
                for (const fs::path& each : unpacked) fs::remove(each, ignored);
                fs::remove(one, ignored);  // fails unless it is empty
            }
        }
        ::close(file);
    }
}

nlohmann::json unpack_workspace(const fs::path& path, const fs::path& folder) {
    auto state = read_state(path);
    auto wanted = files_of(path, state);
    std::error_code error;
    std::erase_if(wanted, [&](const auto& file) { return fs::exists(folder / file.first, error); });
    if (wanted.empty() && fs::exists(folder, error)) return state;
    uint64_t total = 0;
    for (const auto& [name, bytes] : wanted) total += bytes;
    const fs::path beside = folder.string() + new_mark + std::to_string(getpid());
    try {
        fs::create_directories(beside, error);
        if (error) throw WorkspaceError(beside.string() + " cannot be created: " + error.message());
        const FolderInUse in_use(beside);
        const auto room = fs::space(beside, error);
        if (!error && room.available < total)
            throw WorkspaceError(fmt::format("{}: its files need {} bytes, but {} has only {} left", path.string(),
                                             total, folder.parent_path().string(), room.available));
        unpack(path, wanted, beside);
        fs::create_directories(folder, error);
        if (error) throw WorkspaceError(folder.string() + " cannot be created: " + error.message());
        for (const auto& [name, bytes] : wanted) {
            if (fs::exists(folder / name, error)) continue;  // another process has unpacked it meanwhile
            fs::rename(beside / name, folder / name, error);
            if (error) throw WorkspaceError((folder / name).string() + " cannot be created: " + error.message());
        }
        fs::remove_all(beside, error);
        return state;
    } catch (...) {
        fs::remove_all(beside, error);
        fs::remove(folder, error);  // fails unless it is empty
        throw;
    }
}

}  // namespace kvscope::gui
