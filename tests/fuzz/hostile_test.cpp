// Inputs that once ended a reader, or that were made to: tests/data/hostile/<reader>/<what is wrong with it>. Each is
// read or refused with a message; sanitizers look on in the build that has them.
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/fuzz/reader.h"

namespace fs = std::filesystem;

TEST_CASE("hostile input is read or refused with a message") {
    std::set<std::string> names;
    for (const auto& reader : kvscope::fuzz::readers()) {
        names.insert(reader.name);
        const fs::path folder = fs::path(KVSCOPE_TEST_DATA) / "hostile" / reader.name;
        INFO(reader.name << ": no inputs in " << folder);
        REQUIRE(fs::is_directory(folder));
        for (const auto& entry : fs::directory_iterator(folder)) {
            INFO(entry.path());
            std::ifstream file(entry.path(), std::ios::binary);
            REQUIRE(file);
            const std::string bytes{std::istreambuf_iterator<char>(file), {}};
            CHECK_NOTHROW(reader.read(bytes));
        }
    }
    for (const auto& entry : fs::directory_iterator(fs::path(KVSCOPE_TEST_DATA) / "hostile")) {
        INFO(entry.path() << " is of no reader");
        CHECK(names.contains(entry.path().filename().string()));
    }
}
