#include "common/utf8.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>

using namespace kvscope;

TEST_CASE("invalid bytes become U+FFFD as in Python") {
    // Expected: bytes.decode("utf-8", "replace") of Python 3.11, with '?' for U+FFFD.
    const std::pair<std::string, std::string> cases[] = {
        {"caf\xC3\xA9", "caf\xC3\xA9"},
        {"\xE2\x82", "?"},
        {"\xE2\x28\xA1", "?(?"},
        {"\xF0\x9F\x98", "?"},
        {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"},
        {"\xED\xA0\x80", "???"},
        {"\xC0\xAF", "??"},
        {"\xF4\x90\x80\x80", "????"},
        {"a\x80z", "a?z"},
        {"\xE2\x82\xE2", "??"},
    };
    for (const auto& [bytes, expected] : cases) {
        std::string found = utf8_lossy(bytes);
        for (size_t at = 0; (at = found.find("\xEF\xBF\xBD", at)) != std::string::npos;) found.replace(at, 3, "?");
        CHECK(found == expected);
    }
}

TEST_CASE("the first invalid byte is found") {
    CHECK(first_invalid_utf8("na\xC3\xAFve") == std::string::npos);
    CHECK(first_invalid_utf8("ab\xFF") == 2);
    CHECK(first_invalid_utf8("ab\xE2\x82") == 2);
    CHECK_THROWS_AS(require_utf8("ab\xFF"), std::invalid_argument);
}
