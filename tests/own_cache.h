#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace kvscope::testing {

/// Another folder is the cache's until this goes, so that tests neither find nor leave anything in that of the person
/// who runs them.
class OwnCache {
 public:
    explicit OwnCache(const std::filesystem::path& folder) {
        const char* now = std::getenv("XDG_CACHE_HOME");
        had_one_ = now != nullptr;
        if (had_one_) before_ = now;
        ::setenv("XDG_CACHE_HOME", folder.c_str(), 1);
    }
    ~OwnCache() {
        if (had_one_)
            ::setenv("XDG_CACHE_HOME", before_.c_str(), 1);
        else
            ::unsetenv("XDG_CACHE_HOME");
    }
    OwnCache(const OwnCache&) = delete;
    OwnCache& operator=(const OwnCache&) = delete;

 private:
    std::string before_;
    bool had_one_ = false;
};

}  // namespace kvscope::testing
