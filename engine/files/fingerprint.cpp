#include "engine/files/fingerprint.h"

#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>

#include "common/sha256.h"
#include "engine/files/file_reader.h"
#include "engine/files/user_cache_file.h"
#include "kernels/threads/parallel_with_scratch.h"

namespace kvscope::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t block_bytes = uint64_t{4} << 20;
constexpr std::string_view scheme = "kvscope fingerprint 1\n";

std::string hash_file(const fs::path& path) {
    const FileReader file(path);
    const auto n_blocks = static_cast<int64_t>((file.size() + block_bytes - 1) / block_bytes);
    std::vector<XXH128_canonical_t> hashes(static_cast<size_t>(n_blocks));
    kernels::parallel_with_scratch<std::vector<std::byte>>(n_blocks, [&](int64_t i, std::vector<std::byte>& buffer) {
        const uint64_t begin = static_cast<uint64_t>(i) * block_bytes;
        buffer.resize(std::min(block_bytes, file.size() - begin));
        file.read_at(begin, buffer);
        XXH128_canonicalFromHash(&hashes[static_cast<size_t>(i)], XXH3_128bits(buffer.data(), buffer.size()));
    });
    Sha256 sha;
    sha.update(scheme);
    sha.update(std::to_string(file.size()) + "\n");
    sha.update(std::as_bytes(std::span(hashes)));
    return sha.hex_digest();
}

/// Returns the data that a cached hash depends on, such as the time of the last status change.
std::string file_identity(const fs::path& path) {
    struct stat s {};
    if (::stat(path.c_str(), &s) != 0) return {};
    std::error_code error;
    const fs::path absolute = fs::weakly_canonical(path, error);
    if (error) return {};
    const auto time = [](const timespec& t) { return std::to_string(t.tv_sec) + "." + std::to_string(t.tv_nsec); };
    return absolute.string() + "\n" + std::to_string(s.st_size) + "\n" + std::to_string(s.st_dev) + ":" +
           std::to_string(s.st_ino) + "\n" + time(s.st_mtim) + "\n" + time(s.st_ctim) + "\n";
}

/// Whether the last change is old enough that another change would get a different time.
bool settled(const fs::path& path) {
    struct stat s {};
    timespec now{};
    if (::stat(path.c_str(), &s) != 0 || ::clock_gettime(CLOCK_REALTIME, &now) != 0) return false;
    return now.tv_sec - s.st_ctim.tv_sec > 2;
}

bool is_hex_digest(const std::string& text) {
    return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

UserCacheFile entry_of(const std::string& identity) {
    const std::string whole = std::string(scheme) + identity;
    Sha256 sha;
    sha.update(whole);
    return UserCacheFile("fingerprints", sha.hex_digest(), whole);
}

std::string cached_file_hash(const fs::path& path) {
    const std::string identity = file_identity(path);
    const UserCacheFile entry = entry_of(identity);
    if (const auto digest = identity.empty() ? std::nullopt : entry.find(64); digest && is_hex_digest(*digest))
        return *digest;
    const bool cacheable = settled(path);
    std::string digest = hash_file(path);
    if (cacheable && !identity.empty() && file_identity(path) == identity) entry.store(digest);
    return digest;
}

}  // namespace

std::string fingerprint_files(const std::vector<fs::path>& files, std::string_view configuration) {
    Sha256 sha;
    sha.update(scheme);
    for (const fs::path& file : files) sha.update(cached_file_hash(file) + "\n");
    sha.update("configuration " + std::to_string(configuration.size()) + "\n");
    sha.update(configuration);
    return sha.hex_digest();
}

}  // namespace kvscope::checkpoint
