#include "engine/echo/resumable_state.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>

#include "common/whole_file.h"
#include "engine/common/engine_error.h"

namespace kvscope::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto keeping_interval = std::chrono::seconds(60);

template <class T>
std::string_view bytes_of(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

bool read_text(std::istream& in, const std::string& expected) {
    uint64_t length = 0;
    if (!in.read(reinterpret_cast<char*>(&length), sizeof(length)) || length != expected.size()) return false;
    std::string found(length, '\0');
    return in.read(found.data(), static_cast<std::streamsize>(length)) && found == expected;
}

uint64_t hash_of(const ResumableState::Parts& parts, int64_t done) {
    auto hash = static_cast<uint64_t>(done);
    for (const auto part : parts) hash = XXH3_64bits_withSeed(part.data(), part.size(), hash);
    return hash;
}

}  // namespace

ResumableState::ResumableState(std::filesystem::path path, std::string kind, std::string of)
    : path_(std::move(path)), kind_(std::move(kind)), of_(std::move(of)), kept_(Clock::now()) {
    std::error_code error;
    std::ifstream in;
    if (path_.empty() || !std::filesystem::exists(path_, error)) return;
    if (std::filesystem::is_regular_file(path_, error)) {
        if (std::filesystem::file_size(path_, error) == 0 && !error)
            return;  // an empty file remains after the disk was full
        in.open(path_, std::ios::binary);
    }
    if (!in.is_open() || !read_text(in, kind_))
        throw UsageError(fmt::format("{}: another file or folder exists at this path for unfinished work: move it away",
                                     path_.string()));
}

int64_t ResumableState::resume(const Parts& parts, int64_t n_steps, std::string_view unit, Progress& progress) {
    const int64_t done = path_.empty() ? 0 : read(parts);
    if (done > 0) progress.message(fmt::format("resuming after {} of {} {}", done, n_steps, unit));
    kept_ = Clock::now();
    return done;
}

void ResumableState::keep_each_minute(const Parts& parts, int64_t done, Progress& progress) {
    if (Clock::now() - kept_ > keeping_interval) keep(parts, done, progress);
}

void ResumableState::keep(const Parts& parts, int64_t done, Progress& progress) {
    kept_ = Clock::now();
    if (path_.empty()) return;
    if (const auto error = write(parts, done); !error.empty())
        progress.message("the unfinished work could not be saved: " + error);
}

int64_t ResumableState::read(const Parts& parts) const {
    std::ifstream in(path_, std::ios::binary);
    int64_t done = 0;
    uint64_t hash = 0;
    if (!in.is_open() || !read_text(in, kind_) || !read_text(in, of_)) return 0;
    in.read(reinterpret_cast<char*>(&done), sizeof(done));
    std::vector<std::vector<std::byte>> found;
    Parts views;
    for (const auto part : parts) {
        views.emplace_back(found.emplace_back(part.size()));
        in.read(reinterpret_cast<char*>(views.back().data()), static_cast<std::streamsize>(part.size()));
    }
    in.read(reinterpret_cast<char*>(&hash), sizeof(hash));
    if (!in || hash != hash_of(views, done) || done < 1) return 0;  // a truncated or damaged file
    for (size_t i = 0; i < parts.size(); ++i) std::copy(found[i].begin(), found[i].end(), parts[i].begin());
    return done;
}

std::string ResumableState::write(const Parts& parts, int64_t done) const {
    const uint64_t kind_size = kind_.size(), of_size = of_.size(), hash = hash_of(parts, done);
    std::vector<std::string_view> bytes = {bytes_of(kind_size), kind_, bytes_of(of_size), of_, bytes_of(done)};
    for (const auto part : parts) bytes.emplace_back(reinterpret_cast<const char*>(part.data()), part.size());
    bytes.push_back(bytes_of(hash));
    try {
        write_whole_file(path_, bytes, true);
        return {};
    } catch (const FileNotWritten& failed) {
        return fmt::format("{}: {}", path_.string(), std::strerror(failed.error));
    }
}

}  // namespace kvscope::engine
