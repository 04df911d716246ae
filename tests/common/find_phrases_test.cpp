#include "common/find_phrases.h"

#include <catch2/catch.hpp>

using namespace kvscope;

TEST_CASE("phrases are found as whole words, each place once") {
    using Places = std::vector<ByteRange>;
    const auto places = [](const std::string& text, const std::vector<std::string>& phrases, size_t first = 0) {
        return find_phrases(text, phrases, first);
    };
    CHECK(places("It rains in Oslo. Oslo!", {"Oslo", "Norway"}) == Places{{12, 16}, {18, 22}});
    CHECK(places("3 of 13, 3rd, 3", {"3"}) == Places{{0, 1}, {14, 15}});
    CHECK(places("ab abab ab", {"ab"}) == Places{{0, 2}, {8, 10}});
    CHECK(places("a a a", {"a a"}) == Places{{0, 3}, {2, 5}});
    CHECK(places("one two", {"two", "one", "two", "one two"}) == Places{{0, 3}, {0, 7}, {4, 7}});
    CHECK(places("yes. yes", {"yes"}, 1) == Places{{5, 8}});
    CHECK(places("oslo", {"Oslo"}).empty());
    CHECK(places("(x)y", {"(x)"}) == Places{{0, 3}});
    CHECK(places("第3段落", {"3", "段"}) == Places{{3, 4}, {4, 7}});
    CHECK(places(" \n ", {"", " ", "\n"}).empty());
    CHECK(places("", {"a"}).empty());
}
