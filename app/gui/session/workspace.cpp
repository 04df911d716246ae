#include "app/gui/session/workspace.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/gui/session/whole_path.h"
#include "json/bounded_json.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;

constexpr const char* state_name = "workspace.json";
constexpr int version = 1;
constexpr size_t longest_state = size_t{64} << 20;

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

void check(int code, archive* a, const fs::path& path, const char* doing) {
    if (code >= ARCHIVE_WARN) return;
    const char* why = archive_error_string(a);
    throw WorkspaceError(fmt::format("{}: {} failed: {}", path.string(), doing, why ? why : "no reason given"));
}

class Writer {
 public:
    explicit Writer(const fs::path& path) : path_(path), archive_(archive_write_new()) {
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
    fs::path path_;
    std::unique_ptr<archive, FreeWriter> archive_;
};

void put_file(Writer& writer, const fs::path& path, const std::string& name) {
    std::ifstream file(path, std::ios::binary);
    std::error_code error;
    const auto bytes = fs::file_size(path, error);
    if (!file || error) throw WorkspaceError(path.string() + " cannot be read");
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

/// Its state; what else is in it goes into the folder, where there is one.
nlohmann::json read_archive(const fs::path& path, const std::optional<fs::path>& folder) {
    std::error_code error;
    if (!fs::is_regular_file(path, error))
        throw WorkspaceError(path.string() + " cannot be read: it is no regular file");
    const std::unique_ptr<archive, FreeReader> zip(archive_read_new());
    archive_read_support_format_zip(zip.get());
    check(archive_read_open_filename(zip.get(), path.c_str(), 1 << 20), zip.get(), path, "opening");
    nlohmann::json state;
    archive_entry* entry = nullptr;
    while (state.is_null() || folder) {
        const int code = archive_read_next_header(zip.get(), &entry);
        if (code == ARCHIVE_EOF) break;
        check(code, zip.get(), path, "reading");
        const char* stored_name = archive_entry_pathname(entry);
        if (stored_name == nullptr) throw WorkspaceError(path.string() + ": the name of a file in it cannot be read");
        const fs::path name = fs::path(stored_name).lexically_normal();
        if (name.is_absolute() || name.begin() == name.end() || *name.begin() == "..")
            throw WorkspaceError(
                fmt::format("{}: the name {:?} leads out of its folder", path.string(), name.string()));
        if (archive_entry_filetype(entry) == AE_IFDIR) continue;
        const bool is_state = name == state_name;
        if (!is_state && !folder) continue;
        std::string whole;
        std::ofstream file;
        if (!is_state) {
            fs::create_directories((*folder / name).parent_path(), error);
            file.open(*folder / name, std::ios::binary);
        }
        std::vector<char> block(1 << 20);
        for (;;) {
            const auto got = archive_read_data(zip.get(), block.data(), block.size());
            if (got < 0) check(static_cast<int>(got), zip.get(), path, "reading");
            if (got <= 0) break;
            if (is_state) {
                whole.append(block.data(), static_cast<size_t>(got));
                if (whole.size() > longest_state)
                    throw WorkspaceError(fmt::format("{}: {} in it has more than {} MB", path.string(), state_name,
                                                     longest_state >> 20));
            } else
                file.write(block.data(), got);
        }
        if (is_state) {
            state = bounded_json::parse_or_discard(whole);
        } else {
            file.close();
            if (!file) {
                throw WorkspaceError(fmt::format("{}: {:?} in it cannot be written to {}: is the disk full?",
                                                 path.string(), name.string(), folder->string()));
            }
        }
    }
    if (!state.is_object() || !state.contains("kvscope_workspace"))
        throw WorkspaceError(path.string() + " is no kvscope workspace: expected a ZIP archive with workspace.json");
    const auto& found = state["kvscope_workspace"];
    if (!found.is_number())
        throw WorkspaceError(path.string() + " is damaged: the version in its workspace.json is no number");
    if (found.get<double>() >= version + 1) {
        throw LaterWorkspace(
            fmt::format("{} is a workspace of version {}, this program reads up to {}; use a later one", path.string(),
                        found.dump(), version));
    }
    return state;
}

/// What is at a name that is about to be written over may be anything but a later kvscope's workspace.
void require_no_later_one(const fs::path& path) {
    std::error_code error;
    if (!fs::exists(path, error)) return;
    try {
        read_archive(path, std::nullopt);
    } catch (const LaterWorkspace&) {
        throw WorkspaceError(
            path.string() +
            " was saved by a later kvscope, and this one would not keep all of it: choose another name");
    } catch (const WorkspaceError&) {
        // The person was asked whether to replace it.
    }
}

void sync_to_disk(const fs::path& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const bool is_synced = file >= 0 && ::fsync(file) == 0;
    const int error = errno;
    if (file >= 0) ::close(file);
    if (!is_synced) throw WorkspaceError(path.string() + " cannot be written: " + std::strerror(error));
}

}  // namespace

void write_workspace(const fs::path& path, const nlohmann::json& state,
                     const std::vector<std::pair<fs::path, std::string>>& files) {
    require_no_later_one(path);
    const fs::path beside = fmt::format("{}.new-{}", path.string(), getpid());
    std::error_code error;
    try {
        Writer writer(beside);
        nlohmann::json described = state;
        described.emplace("kvscope_workspace", version);
        const std::string text = described.dump(1);
        writer.begin(state_name, text.size());
        writer.put(text.data(), text.size());
        for (const auto& [file, name] : files) put_file(writer, file, name);
        writer.finish();
        sync_to_disk(beside);
    } catch (const nlohmann::json::type_error&) {
        fs::remove(beside, error);
        throw WorkspaceError("the name of a trace is not UTF-8: rename it, so that it can be read elsewhere");
    } catch (...) {
        fs::remove(beside, error);
        throw;
    }
    fs::rename(beside, path, error);
    if (!error) return;
    const std::string why = error.message();
    fs::remove(beside, error);
    throw WorkspaceError(path.string() + " cannot be written: " + why);
}

std::string workspace_folder_name(const fs::path& path) {
    // The end of a ZIP archive lists its files with their checksums.
    constexpr std::streamoff most = 1 << 16;
    std::error_code error;
    std::ifstream file;
    if (fs::is_regular_file(path, error)) file.open(path, std::ios::binary | std::ios::ate);
    if (!file.is_open()) throw WorkspaceError(path.string() + " cannot be read: is it there, and may you read it?");
    const std::streamoff bytes = file.tellg();
    file.seekg(std::max<std::streamoff>(bytes - most, 0));
    const std::string end{std::istreambuf_iterator<char>(file), {}};
    const fs::path whole = fs::weakly_canonical(whole_path(path), error);
    return fmt::format("{}-{:016x}", path.stem().string(), fnv1a(fmt::format("{}\n{}\n", whole.string(), bytes) + end));
}

nlohmann::json read_workspace(const fs::path& path, const fs::path& folder) {
    std::error_code error;
    if (fs::exists(folder, error)) return read_archive(path, std::nullopt);
    const fs::path beside = fmt::format("{}.new-{}", folder.string(), getpid());
    try {
        fs::create_directories(beside, error);
        if (error) throw WorkspaceError(beside.string() + " cannot be made: " + error.message());
        auto state = read_archive(path, beside);
        fs::rename(beside, folder, error);
        // Another window may have unpacked it in the meantime.
        std::error_code ignored;
        if (error && !fs::exists(folder, ignored))
            throw WorkspaceError(folder.string() + " cannot be made: " + error.message());
        fs::remove_all(beside, error);
        return state;
    } catch (...) {
        fs::remove_all(beside, error);
        throw;
    }
}

}  // namespace kvscope::gui
