#include "engine/common/memory.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>

#include "engine/common/engine_error.h"

namespace kvscope::engine {
namespace {

namespace fs = std::filesystem;

uint64_t bytes_of(const fs::path& file, const std::string& key) {
    std::ifstream status(file);
    std::string line;
    while (std::getline(status, line)) {
        if (line.rfind(key + ":", 0) == 0) return std::stoull(line.substr(key.size() + 1)) * 1024;
    }
    return 0;
}

/// Returns the number in a file; nullopt if the file contains none (for example "max").
std::optional<uint64_t> number_in(const fs::path& file) {
    std::ifstream in(file);
    std::string text;
    in >> text;
    uint64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    return read.ec == std::errc() && read.ptr == text.data() + text.size() && !text.empty() ? std::optional(number)
                                                                                            : std::nullopt;
}

struct GroupFiles {
    const char* folder;
    const char* limit;
    const char* used;
    const char* of_files;  ///< prefix of the keys in memory.stat that count cached file pages
};
constexpr GroupFiles version_1{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"};
constexpr GroupFiles version_2{"sys/fs/cgroup", "memory.max", "memory.current", ""};

/// Returns the bytes of cached file pages, which the system frees when memory is short.
uint64_t bytes_of_files(const fs::path& stat, const std::string& prefix) {
    std::ifstream in(stat);
    uint64_t sum = 0, bytes = 0;
    for (std::string key; in >> key >> bytes;)
        if (key == prefix + "inactive_file" || key == prefix + "active_file") sum += bytes;
    return sum;
}

/// Returns the memory that a control group and its parents leave free. Skips missing folders, as in containers.
std::optional<uint64_t> left_by_groups(const fs::path& root, const GroupFiles& files, fs::path group) {
    std::optional<uint64_t> least;
    for (group = group.relative_path();; group = group.parent_path()) {
        const fs::path folder = root / files.folder / group;
        const auto limit = number_in(folder / files.limit);
        const auto used = number_in(folder / files.used);
        if (limit && used) {
            const uint64_t held = *used - std::min(*used, bytes_of_files(folder / "memory.stat", files.of_files));
            const uint64_t left = *limit - std::min(*limit, held);
            least = std::min(least.value_or(left), left);
        }
        if (group.empty()) return least;
    }
}

/// Reads /proc/self/cgroup, with lines "0::/path" (version 2) and "7:memory:/path" (version 1).
std::optional<uint64_t> left_by_groups(const fs::path& root) {
    std::ifstream in(root / "proc/self/cgroup");
    std::optional<uint64_t> least;
    for (std::string line; std::getline(in, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        const bool is_first_version = controllers.find(",memory,") != std::string::npos;
        if (!is_first_version && controllers != ",,") continue;
        const auto left = left_by_groups(root, is_first_version ? version_1 : version_2, line.substr(second + 1));
        if (left) least = std::min(least.value_or(*left), *left);
    }
    return least;
}

}  // namespace

uint64_t resident_bytes() { return bytes_of("/proc/self/status", "VmRSS"); }

namespace {

std::string size_text(uint64_t bytes) {
    constexpr double mib = 1024.0 * 1024;
    const double size = static_cast<double>(bytes) / mib;
    return size < 1024 ? fmt::format("{:.0f} MiB", size) : fmt::format("{:.2f} GiB", size / 1024);
}

}  // namespace

AvailableMemory available_memory(const fs::path& root) {
    AvailableMemory available;
    const auto lower = [&](uint64_t bytes, const char* limit) {
        if (!available.bytes || bytes < *available.bytes) available = {bytes, limit};
    };
    if (const uint64_t bytes = bytes_of(root / "proc/meminfo", "MemAvailable")) lower(bytes, "");
    if (const auto left = left_by_groups(root)) lower(*left, "the memory limit of its control group");
    const auto lower_by = [&](auto which, const char* key, const char* limit) {
        rlimit most{};
        if (getrlimit(which, &most) != 0 || most.rlim_cur == RLIM_INFINITY) return;
        lower(most.rlim_cur - std::min<uint64_t>(most.rlim_cur, bytes_of("/proc/self/status", key)), limit);
    };
    lower_by(RLIMIT_AS, "VmSize", "ulimit -v");
    lower_by(RLIMIT_DATA, "VmData", "ulimit -d");
    return available;
}

void require_available_memory(uint64_t bytes, const std::string& what, const std::string& remedy) {
    const AvailableMemory available = available_memory();
    const char* is_ignored = std::getenv("KVSCOPE_ANY_MEMORY");
    if (!available.bytes || bytes <= *available.bytes || (is_ignored && *is_ignored)) return;
    throw RunError(fmt::format(
        "{} {} of memory, but {} are free{}: {}, or free some memory. KVSCOPE_ANY_MEMORY=1 skips this check", what,
        size_text(bytes), size_text(*available.bytes),
        available.limit.empty() ? "" : fmt::format(" to this process ({})", available.limit), remedy));
}

uint64_t peak_resident_bytes() { return bytes_of("/proc/self/status", "VmHWM"); }

bool reset_peak_memory() {
    malloc_trim(0);
    std::ofstream file("/proc/self/clear_refs");
    file << "5" << std::flush;
    return file.good();
}

}  // namespace kvscope::engine
