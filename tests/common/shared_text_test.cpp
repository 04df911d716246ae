#include "common/shared_text.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <string_view>

using kvscope::SharedText;

TEST_CASE("copies of a shared text have the same characters", "[shared_text]") {
    const SharedText text = "a text that is longer than the texts that std::string stores in itself";
    SharedText copy = text;
    CHECK(copy == text);
    CHECK(&copy.string() == &text.string());
    copy = copy + "!";
    CHECK(text.string().back() == 'f');
    CHECK(copy.string().back() == '!');
    copy.clear();
    CHECK(copy.empty());
    CHECK_FALSE(text.empty());
}

TEST_CASE("shared texts compare like other texts", "[shared_text]") {
    const SharedText a = "a", b = std::string("b"), none, empty = "";
    CHECK(a == SharedText("a"));
    CHECK(a == "a");
    CHECK(a == std::string("a"));
    CHECK(std::string_view("a") == a);
    CHECK(a != b);
    CHECK(a < b);
    CHECK(none == empty);
    CHECK(none < a);
    CHECK(empty.empty());
    CHECK(none.string().empty());
    CHECK(SharedText(std::string("a\0b", 3)).size() == 3);
    CHECK(b.starts_with("b"));
    CHECK_FALSE(b.starts_with("ba"));
}

TEST_CASE("shared texts are used where other texts are", "[shared_text]") {
    const SharedText text = "τ";
    const std::string& as_string = text;
    const std::string_view as_view = text;
    CHECK(as_string == as_view);
    CHECK(text + ", " + text == "τ, τ");
    CHECK(fmt::format("[{:>3}]", text) == "[  τ]");
    const std::map<std::string, int> numbers = {{text, 1}};
    CHECK(numbers.at("τ") == 1);
}
