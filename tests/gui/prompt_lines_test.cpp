#include "app/gui/tokens/prompt_lines.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

namespace kvscope::gui {
namespace {

PromptText prompt_of(const std::vector<std::string>& tokens) {
    return make_prompt_text_from_tokens(std::vector<int32_t>(tokens.size(), 0), tokens);
}

std::vector<std::string> lines_of(const std::vector<std::string>& tokens, size_t width) {
    const PromptText prompt = prompt_of(tokens);
    const PromptLines lines = break_lines(prompt, width);
    std::vector<std::string> out;
    for (size_t i = 0; i < lines.size(); ++i) {
        std::string line;
        size_t cell = 0;
        for (const PlacedToken& piece : lines.line(i)) {
            CHECK(piece.cell == cell);
            cell += piece.n_cells;
            line += prompt.shown[piece.token].substr(piece.begin, piece.end - piece.begin);
        }
        CHECK(cell <= std::max<size_t>(width, 4));
        out.push_back(line);
    }
    return out;
}

using Strings = std::vector<std::string>;

TEST_CASE("a prompt breaks between words, and a word breaks only if it is longer than a line") {
    CHECK(lines_of({"The", " tre", "aty", " was"}, 12) == Strings{"The·treaty", "·was"});
    CHECK(lines_of({"The", " tre", "aty", " was"}, 8) == Strings{"The", "·treaty", "·was"});
    CHECK(lines_of({"abcd", "efgh"}, 4) == Strings{"abcd", "efgh"});
    CHECK(lines_of({"abcdefghij"}, 4) == Strings{"abcd", "efgh", "ij"});
}

TEST_CASE("line breaks of the text are kept, also inside tokens") {
    CHECK(lines_of({"a", "\n\n", "b"}, 10) == Strings{"a↵", "↵", "b"});
    CHECK(lines_of({"a.\n  ", "b"}, 10) == Strings{"a.↵", "··b"});
}

TEST_CASE("wide characters take two cells, combining marks none") {
    CHECK(text_width_in_cells("東京") == 4);
    CHECK(text_width_in_cells("e\xCC\x81") == 1);
    CHECK(text_width_in_cells("👩‍👧") == 2);
    CHECK(text_width_in_cells("👍🏽") == 2);
    CHECK(lines_of({"東京", "都"}, 4) == Strings{"東京", "都"});
    CHECK(lines_of({"in", "東京", "都"}, 7) == Strings{"in東京", "都"});
}

/// Tokens of a one-line prompt from left to right.
Strings from_left(const std::vector<std::string>& tokens) {
    const PromptText prompt = prompt_of(tokens);
    const PromptLines lines = break_lines(prompt, 80);
    REQUIRE(lines.size() == 1);
    std::vector<PlacedToken> pieces(lines.line(0).begin(), lines.line(0).end());
    std::sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) { return a.cell < b.cell; });
    Strings out;
    for (const PlacedToken& piece : pieces) out.push_back(tokens[piece.token]);
    return out;
}

TEST_CASE("right-to-left scripts are drawn from right to left") {
    CHECK(from_left({"a", " שלום", " עולם", " b"}) == Strings{"a", " עולם", " שלום", " b"});
    // Numbers are read from left to right, and a full stop follows the direction of its paragraph.
    CHECK(from_left({"שלום", " 1", "2", " עולם", "."}) == Strings{".", " עולם", " 1", "2", "שלום"});
    CHECK(from_left({"x", " שלום", ",", " עולם", "."}) == Strings{"x", " עולם", ",", " שלום", "."});
    CHECK(break_lines(prompt_of({"שלום", " a"}), 40).is_turned(0));
    CHECK_FALSE(break_lines(prompt_of({"a", " שלום"}), 40).is_turned(0));
    CHECK_FALSE(is_right_to_left("abc שלום"));
}

TEST_CASE("letters that join across tokens are one text") {
    const PromptText prompt = prompt_of({"a", " مر", "ح", "با", " b"});
    const PromptLines lines = break_lines(prompt, 40);
    REQUIRE(lines.joined.size() == 1);
    const JoinedTokens& joined = lines.joined.front();
    CHECK(joined.first == 1);
    CHECK(joined.end == 4);
    CHECK(joined.has_space);
    CHECK(joined.is_right_to_left);
    CHECK(joined.text == "مرحبا");
    CHECK(joined.ends == std::vector<uint32_t>{4, 6, 10});
    CHECK(lines.joined_in(0).size() == 1);

    CHECK(break_lines(prompt_of({"नम", "स्", "ते"}), 40).joined.size() == 1);
    CHECK(break_lines(prompt_of({"e", "\xCC\x81"}), 40).joined.size() == 1);
    const PromptLines family = break_lines(prompt_of({"👩", "\xE2\x80\x8D", "👧", "x"}), 40);
    REQUIRE(family.joined.size() == 1);
    CHECK(family.joined.front().ends.size() == 3);
    CHECK(family.line(0).back().cell == 2);  // a single picture
    CHECK(break_lines(prompt_of({"مر", " حبا", "12"}), 40).joined.size() == 2);
    CHECK(break_lines(prompt_of({"tre", "aty", "東", "京"}), 40).joined.empty());
}

TEST_CASE("a character with bytes in several tokens spans these tokens") {
    const PromptText prompt = prompt_of({"a", "⟨E6⟩", "⟨B5⟩⟨8B⟩", "试", "⟨F0⟩⟨9F⟩", "⟨98⟩⟨80⟩!"});
    const PromptLines lines = break_lines(prompt, 40);
    REQUIRE(lines.joined.size() == 2);
    CHECK(lines.joined[0].text == "测");
    CHECK(lines.joined[0].ends == std::vector<uint32_t>{1, 3});
    CHECK(lines.joined[1].text == "😀!");
    CHECK(lines.joined[1].ends == std::vector<uint32_t>{2, 5});
    std::vector<uint32_t> cells;
    for (const PlacedToken& piece : lines.line(0)) cells.push_back(piece.n_cells);
    CHECK(cells == std::vector<uint32_t>{1, 2, 0, 2, 2, 1});

    CHECK(prompt.text == "a测试😀!");
    CHECK(analysis::find_text(prompt, "测") == std::vector<std::pair<int64_t, int64_t>>{{1, 2}});
    CHECK(whole_characters_of_tokens(prompt, 2, 2) == "测");
    CHECK(whole_characters_of_tokens(prompt, 2, 4) == "测试😀");

    const PromptText lone = prompt_of({"⟨E6⟩", "⟨B5⟩", "x⟨41⟩"});  // bytes that form no character
    CHECK(lone.text == "⟨E6⟩⟨B5⟩x⟨41⟩");
    CHECK(break_lines(lone, 40).joined.empty());
    CHECK(break_lines(lone, 40).line(0)[0].n_cells == 4);
}

TEST_CASE("letters join within a line but not across lines") {
    const PromptText prompt = prompt_of({"حبا", "مرح", "با"});
    const PromptLines lines = break_lines(prompt, 6);
    REQUIRE(lines.size() == 2);
    REQUIRE(lines.joined_in(0).size() == 1);
    CHECK(lines.joined_in(0).front().text == "حبامرح");
    REQUIRE(lines.joined_in(1).size() == 1);
    CHECK(lines.joined_in(1).front().text == "با");
}

TEST_CASE("a token's line is the one in which it begins") {
    const PromptLines lines = break_lines(prompt_of({"one", " two", "\n", "abcdefghij", " x"}), 8);
    CHECK(lines.line_of(0) == 0);
    CHECK(lines.line_of(3) == 1);
    CHECK(lines.line_of(4) == 2);
    CHECK(break_lines(prompt_of({}), 8).size() == 1);
}

}  // namespace
}  // namespace kvscope::gui
