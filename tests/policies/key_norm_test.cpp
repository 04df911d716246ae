#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "policies/registry/registry.h"
#include "tests/policies/random_cache.h"

// The documentation names the file policies/key_norm.cpp and its function key_norm_definition.
#define key_norm_definition documented_key_norm_definition
#include "tests/policies/documentation/key_norm.cpp"
#undef key_norm_definition

using namespace kvscope::policies;

namespace {

std::string contents(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

}  // namespace

TEST_CASE("docs/adding-a-policy.md shows the file that is compiled here", "[documentation]") {
    const std::filesystem::path source = std::filesystem::path(KVSCOPE_TEST_DATA) / ".." / "..";
    const std::string page = contents(source / "docs" / "adding-a-policy.md");
    const std::string file = contents(source / "tests" / "policies" / "documentation" / "key_norm.cpp");
    REQUIRE_FALSE(file.empty());
    CHECK(page.find("```cpp\n" + file + "```") != std::string::npos);
}

TEST_CASE("the policy in the documentation keeps the smallest keys", "[documentation]") {
    test::Cache cache = test::random_cache({1, 2, 1, 2}, 5, 1);
    cache.layers[0].keys = {3, 4, /**/ 0, 1, /**/ 6, 8, /**/ 2, 0, /**/ 9, 9};  // norms 5, 1, 10, 2, 12.7
    cache.observe(1);
    const Definition definition = documented_key_norm_definition();
    PolicySpec spec{&definition, ParameterValues(definition.parameters)};
    CHECK(test::select_all(spec.create(), cache, 3)[0].rows[0] == std::vector<uint32_t>{0, 1, 3});
    spec.values.set("recent", "1");
    CHECK(test::select_all(spec.create(), cache, 3)[0].rows[0] == std::vector<uint32_t>{1, 3, 4});
}
