#include "app/gui/answer_text.h"

#include <catch2/catch.hpp>

namespace kvscope::gui {
namespace {

std::vector<std::string> differing(std::string_view text, std::string_view reference) {
    auto words = words_of(text);
    mark_differences(text, words, reference);
    std::vector<std::string> out;
    for (const Word& word : words) {
        if (word.differs) out.emplace_back(text.substr(word.begin, word.end - word.begin));
    }
    return out;
}

using Strings = std::vector<std::string>;

TEST_CASE("words that the reference has not are marked, wherever they stand") {
    CHECK(differing("signed in Paris by three", "signed in Paris by three").empty());
    CHECK(differing("signed in Rome by three", "signed in Paris by three") == Strings{"Rome"});
    CHECK(differing("it was signed in Paris", "signed in Paris") == Strings{"it", "was"});
    CHECK(differing("a b", "") == Strings{"a", "b"});
    CHECK(differing("", "a b").empty());
}

TEST_CASE("words know the line breaks before them") {
    const auto words = words_of("one\n\n two");
    REQUIRE(words.size() == 2);
    CHECK(words[1].line_breaks == 2);
    CHECK(words[1].begin == 6);
}

TEST_CASE("scripts without blanks have a word per character, Korean has not") {
    const std::string_view text = "in 東京, 한국어";
    const auto words = words_of(text);
    std::vector<std::string> found;
    for (const Word& word : words) found.emplace_back(text.substr(word.begin, word.end - word.begin));
    CHECK(found == Strings{"in", "東", "京", ",", "한국어"});
    CHECK_FALSE(words[1].glued);
    CHECK(words[2].glued);
    CHECK(words_of(std::string(100, 'x')).size() == 4);
}

TEST_CASE("decode steps stand where their tokens do; unknown ones share what is between") {
    const std::string text = " in Paris, now";
    const std::unordered_map<int32_t, std::string> pieces{{1, " in"}, {3, ","}, {4, " now"}};
    const auto places = place_steps(text, std::vector<int32_t>{1, 2, 3, 4, 0}, pieces);
    REQUIRE(places.size() == 5);
    CHECK(text.substr(places[0].begin, places[0].end - places[0].begin) == " in");
    CHECK(text.substr(places[1].begin, places[1].end - places[1].begin) == " Paris");
    CHECK(text.substr(places[2].begin, places[2].end - places[2].begin) == ",");
    CHECK(text.substr(places[3].begin, places[3].end - places[3].begin) == " now");
    CHECK(places[4].begin == text.size());  // the end of the text writes nothing
    CHECK(places[4].end == text.size());
}

}  // namespace
}  // namespace kvscope::gui
