#include "app/figures/same_file.h"

#include <system_error>

namespace kvscope::figures {
namespace {

namespace fs = std::filesystem;

/// Returns the canonical path, also for links to files that do not exist yet.
fs::path whole(fs::path path) {
    constexpr int most_links = 40;
    std::error_code error;
    for (int i = 0; i < most_links && fs::is_symlink(path, error); ++i) {
        const fs::path to = fs::read_symlink(path, error);
        if (error) break;
        path = path.parent_path() / to;  // an absolute target replaces the folder
    }
    const fs::path absolute = fs::absolute(path, error);
    const fs::path canonical = fs::weakly_canonical(error ? path : absolute, error);
    return error ? path : canonical;
}

}  // namespace

bool are_same_file(const fs::path& one, const fs::path& other) {
    std::error_code error;
    return whole(one) == whole(other) || fs::equivalent(one, other, error);
}

}  // namespace kvscope::figures
