#pragma once

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace kvscope::checkpoint::testing {

namespace fs = std::filesystem;

[[nodiscard]] inline fs::path data(const std::string& name) { return fs::path(KVSCOPE_TEST_DATA) / name; }

/// A folder that the destructor removes.
class TemporaryFolder {
 public:
    TemporaryFolder() {
        static int counter = 0;
        path_ = fs::temp_directory_path() /
                ("kvscope-checkpoint-" + std::to_string(::getpid()) + "-" + std::to_string(counter++));
        fs::create_directories(path_);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code error;
        fs::remove_all(path_, error);
    }
    operator const fs::path&() const { return path_; }
    [[nodiscard]] fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
    fs::path path_;
};

[[nodiscard]] inline std::string read_file(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    INFO(path);
    REQUIRE(in);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void write_file(const fs::path& path, std::string_view bytes) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << bytes;
    INFO(path);
    REQUIRE(out.flush());
}

}  // namespace kvscope::checkpoint::testing
