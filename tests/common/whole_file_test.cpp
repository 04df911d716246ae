#include "common/whole_file.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/temporary_folder.h"

using namespace kvscope;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

std::string contents(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

size_t n_files(const fs::path& folder) {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a file is written completely, replaced only with force, and no other file is left") {
    const TemporaryFolder folder;
    const fs::path path = folder / "fig.pdf";
    write_whole_file(path, "first", false);
    CHECK(contents(path) == "first");
    CHECK_THROWS_WITH(refuse_existing(path), Contains("fig.pdf") && Contains("was not replaced") && !Contains("--"));
    CHECK_THROWS_AS(write_whole_file(path, "second", false), FileExists);
    CHECK(contents(path) == "first");
    write_whole_file(path, "second", true);
    CHECK(contents(path) == "second");
    CHECK(n_files(folder.path()) == 1);
}

TEST_CASE("force replaces the target of a link and keeps the link") {
    const TemporaryFolder folder;
    write_whole_file(folder / "real.svg", "old", false);
    fs::create_symlink(folder / "real.svg", folder / "link.svg");
    CHECK_THROWS_AS(write_whole_file(folder / "link.svg", "new", false), FileExists);
    write_whole_file(folder / "link.svg", "new", true);
    CHECK(fs::is_symlink(folder / "link.svg"));
    CHECK(contents(folder / "real.svg") == "new");
}

TEST_CASE("a file that cannot be written is reported and leaves nothing behind") {
    const TemporaryFolder folder;
    CHECK_THROWS_WITH(write_whole_file(folder / "no-folder" / "fig.pdf", "x", false),
                      Contains("there is no folder " + (folder / "no-folder").string()));
    CHECK_THROWS_WITH(write_whole_file("/proc/fig.pdf", "x", false),
                      Contains("/proc/fig.pdf: no file can be created in /proc (") && Contains("another folder"));
    fs::create_directory(folder / "folder.pdf");
    CHECK_THROWS_AS(write_whole_file(folder / "folder.pdf", "x", true), FileNotWritten);
    CHECK_THROWS_AS(refuse_existing(folder / "folder.pdf"), FileExists);
    CHECK(n_files(folder.path()) == 1);
}

TEST_CASE("a full device is reported, and devices are never replaced") {
    if (!fs::is_character_file("/dev/full")) {
        WARN("skipped: there is no /dev/full");
        return;
    }
    CHECK_THROWS_WITH(write_whole_file("/dev/full", std::string(100000, 'x'), true), Contains("No space left"));
    CHECK(fs::is_character_file("/dev/full"));
    CHECK_NOTHROW(refuse_existing("/dev/null"));
    CHECK_NOTHROW(write_whole_file("/dev/null", "x", false));
    CHECK(fs::is_character_file("/dev/null"));
}
