#include "engine/files/user_cache_file.h"

#include <xxhash.h>

#include <array>
#include <fstream>

#include "common/user_cache_folder.h"
#include "common/whole_file.h"

namespace kvscope::checkpoint {
namespace {

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
    if (const auto cache = user_cache_folder(); !cache.empty()) path_ = cache / folder / name;
}

std::optional<std::string> UserCacheFile::find(uint64_t n_bytes) const {
    if (path_.empty()) return std::nullopt;
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(path_, error);
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
    std::filesystem::create_directories(path_.parent_path(), error);
    const std::string digest = digest_of(kept);
    const std::array<std::string_view, 3> parts = {head_, digest, kept};
    try {
        write_whole_file(path_, parts, true);
    } catch (const FileNotWritten&) {  // the cache is optional
    }
}

}  // namespace kvscope::checkpoint
