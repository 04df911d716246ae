#include "engine/tokenizer/tokens_of_ranges.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

using namespace kvscope;
using kvscope::checkpoint::tokens_of_ranges;

namespace {
using Tokens = std::vector<uint32_t>;
}

TEST_CASE("tokens of ranges: parts of tokens, tokens without text, and parts of characters") {
    const Tokens ends{0, 2, 3, 7, 0, 9};  // the first and the fifth token have no text
    CHECK(tokens_of_ranges(ends, {{0, 1}}) == Tokens{1});
    CHECK(tokens_of_ranges(ends, {{1, 3}}) == Tokens{1, 2});
    CHECK(tokens_of_ranges(ends, {{6, 8}}) == Tokens{3, 5});
    CHECK(tokens_of_ranges(ends, {{8, 9}, {0, 2}}) == Tokens{1, 5});
    CHECK(tokens_of_ranges(ends, {{9, 12}}).empty());
    CHECK(tokens_of_ranges(ends, {}).empty());
    const Tokens character{1, 4, 4, 4, 5};  // three tokens share a character of three bytes
    CHECK(tokens_of_ranges(character, {{1, 4}}) == Tokens{1, 2, 3});
    CHECK(tokens_of_ranges(character, {{4, 5}}) == Tokens{4});
}

TEST_CASE("tokens of ranges equal the result of a plain loop") {
    std::mt19937 random(GENERATE(1U, 2U, 3U, 4U));
    Tokens ends;
    uint32_t size = 0;
    for (int i = 0; i < 60; ++i) ends.push_back(size += 1 + random() % 4);
    std::vector<ByteRange> ranges;
    for (int i = 0; i < 8; ++i) {
        const size_t begin = random() % size;
        ranges.emplace_back(begin, begin + 1 + random() % 12);
    }
    Tokens expected;
    for (uint32_t token = 0; token < ends.size(); ++token) {
        const size_t begin = token == 0 ? 0 : ends[token - 1];
        const auto overlaps = [&](const ByteRange& range) { return range.first < ends[token] && begin < range.second; };
        if (std::ranges::any_of(ranges, overlaps)) expected.push_back(token);
    }
    CHECK(tokens_of_ranges(ends, ranges) == expected);
}
