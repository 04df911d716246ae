#include "app/gui/prompt_lines.h"

#include <catch2/catch.hpp>
#include <string>

namespace kvscope::gui {
namespace {

PromptText prompt_of(const std::vector<std::string>& tokens) {
    PromptText prompt;
    for (const auto& token : tokens) {
        prompt.ids.push_back(0);
        prompt.tokens.push_back(token);
        prompt.shown.push_back(shown_token(token));
        prompt.begins.push_back(prompt.text.size());
        prompt.text += token;
    }
    prompt.begins.push_back(prompt.text.size());
    return prompt;
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

TEST_CASE("a prompt breaks before words, and words break only where a line is too short for them") {
    CHECK(lines_of({"The", " tre", "aty", " was"}, 12) == Strings{"The·treaty", "·was"});
    CHECK(lines_of({"The", " tre", "aty", " was"}, 8) == Strings{"The", "·treaty", "·was"});
    CHECK(lines_of({"abcd", "efgh"}, 4) == Strings{"abcd", "efgh"});
    CHECK(lines_of({"abcdefghij"}, 4) == Strings{"abcd", "efgh", "ij"});
}

TEST_CASE("line breaks of the text are kept, inside tokens too") {
    CHECK(lines_of({"a", "\n\n", "b"}, 10) == Strings{"a↵", "↵", "b"});
    CHECK(lines_of({"a.\n  ", "b"}, 10) == Strings{"a.↵", "··b"});
}

TEST_CASE("wide characters take two cells, combining marks none") {
    CHECK(n_cells("東京") == 4);
    CHECK(n_cells("e\xCC\x81") == 1);
    CHECK(n_cells("👩‍👧") == 2);
    CHECK(n_cells("👍🏽") == 2);
    CHECK(lines_of({"東京", "都"}, 4) == Strings{"東京", "都"});
    CHECK(lines_of({"in", "東京", "都"}, 7) == Strings{"in東京", "都"});
}

TEST_CASE("neighbours that are written from right to left stand so") {
    const PromptLines lines = break_lines(prompt_of({"a", " שלום", " עולם", " b"}), 40);
    const auto line = lines.line(0);
    CHECK(line[0].cell == 0);
    CHECK(line[2].cell == 1);  // the second Hebrew word is left of the first
    CHECK(line[1].cell == 1 + line[2].n_cells);
    CHECK(line[3].cell == 1 + line[1].n_cells + line[2].n_cells);
    CHECK_FALSE(is_right_to_left("abc שלום"));
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
