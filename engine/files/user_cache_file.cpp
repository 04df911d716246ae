#include "engine/files/user_cache_file.h"

#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cstdlib>
#include <fstream>

namespace kvscope::checkpoint {
namespace {

namespace fs = std::filesystem;

fs::path cache_folder() {
    if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
        return fs::path(cache) / "kvscope";
    if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
        return fs::path(home) / ".cache" / "kvscope";
    return {};
}

/// Returns a hash that reveals damaged files.
std::string digest_of(std::string_view kept) {
    XXH128_canonical_t digest;
    XXH128_canonicalFromHash(&digest, XXH3_128bits(kept.data(), kept.size()));
    return std::string(reinterpret_cast<const char*>(digest.digest), sizeof digest.digest);
}

constexpr size_t digest_bytes = sizeof(XXH128_canonical_t);

}  // namespace

UserCacheFile::UserCacheFile(const std::string& folder, const std::string& name, std::string identity)
    : head_(std::to_string(identity.size()) + "\n" + std::move(identity)) {
    if (const fs::path cache = cache_folder(); !cache.empty()) path_ = cache / folder / name;
}

std::optional<std::string> UserCacheFile::find(uint64_t n_bytes) const {
    if (path_.empty()) return std::nullopt;
    std::error_code error;
    const uint64_t size = fs::file_size(path_, error);
    if (error || size != head_.size() + digest_bytes + n_bytes) return std::nullopt;
    std::ifstream in(path_, std::ios::binary);
    std::string head(head_.size(), '\0'), digest(digest_bytes, '\0'), kept(n_bytes, '\0');
    for (std::string* part : {&head, &digest, &kept}) in.read(part->data(), static_cast<std::streamsize>(part->size()));
    if (!in || head != head_ || digest != digest_of(kept)) return std::nullopt;
    return kept;
}

void UserCacheFile::store(std::string_view kept) const {
    if (path_.empty()) return;
    std::error_code error;
    fs::create_directories(path_.parent_path(), error);
    static std::atomic<unsigned> count{0};
    fs::path temporary = path_;
    temporary += "." + std::to_string(::getpid()) + "." + std::to_string(count.fetch_add(1));
    std::ofstream out(temporary, std::ios::binary);
    out << head_ << digest_of(kept) << kept;
    out.close();
    if (out) fs::rename(temporary, path_, error);
    if (!out || error) fs::remove(temporary, error);
}

}  // namespace kvscope::checkpoint
