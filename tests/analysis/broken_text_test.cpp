#include "analysis/tables/broken_text.h"

#include <algorithm>
#include <catch2/catch.hpp>

using kvscope::analysis::BrokenText;

namespace {

using Strings = std::vector<std::string>;

BrokenText broken(const Strings& tokens, size_t width = 40) { return {tokens, tokens.size(), width}; }

/// Returns the pieces of a line from left to right.
Strings from_left(const BrokenText& text, size_t line = 0) {
    std::vector<BrokenText::Piece> pieces;
    for (const auto& piece : text.pieces())
        if (piece.line == line) pieces.push_back(piece);
    std::sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) { return a.cell < b.cell; });
    Strings out;
    for (const auto& piece : pieces) out.push_back(piece.text);
    return out;
}

/// Returns the pieces, with those that are drawn together joined.
Strings together(const BrokenText& text) {
    Strings out;
    bool joins = false;
    for (const auto& piece : text.pieces()) {
        if (joins)
            out.back() += piece.text;
        else
            out.push_back(piece.text);
        joins = piece.joins_next;
    }
    return out;
}

}  // namespace

TEST_CASE("broken text: right-to-left text is in visual order") {
    CHECK(from_left(broken({"a", " שלום", " עולם", " b"})) == Strings{"a", " עולם", " שלום", " b"});
    CHECK(from_left(broken({"שלום", " 1", "2", " עולם", "."})) == Strings{".", " עולם", " 1", "2", "שלום"});
    CHECK(from_left(broken({"one", " two", "."})) == Strings{"one", " two", "."});
}

TEST_CASE("broken text: right-to-left paragraphs are aligned right") {
    const BrokenText text = broken({"שלום", " עולם", "\n", "one", " שלום"}, 20);
    REQUIRE(text.n_lines() == 2);
    const auto& pieces = text.pieces();
    CHECK(pieces[0].cell == 16);
    CHECK(pieces[1].cell == 11);
    CHECK(pieces[0].is_right_to_left);
    CHECK(pieces[2].text == "one");
    CHECK(pieces[2].cell == 0);
    CHECK_FALSE(pieces[2].is_right_to_left);
    CHECK(pieces[3].cell == 3);
    CHECK(pieces[3].is_right_to_left);
}

TEST_CASE("broken text: the direction of the paragraph determines the alignment of its lines") {
    const BrokenText hebrew = broken({"שלום", " עולם", " one", " two", " three"}, 14);
    REQUIRE(hebrew.n_lines() == 2);
    CHECK(from_left(hebrew, 1) == Strings{" two", " three"});
    CHECK(hebrew.pieces()[3].cell == 14 - 10);
    const BrokenText english = broken({"The", " keeper", " שלום", " עולם", " שלום", " end"}, 14);
    REQUIRE(english.n_lines() == 3);
    CHECK(english.pieces()[3].cell == 0);
    CHECK(english.pieces()[2].begins_line);
    CHECK_FALSE(english.pieces()[3].begins_line);
}

TEST_CASE("broken text: tabs and control characters take cells") {
    const BrokenText text = broken({"if:", "\n", "\t", "\treturn", "\r\n", "\x1b["});
    CHECK(from_left(text, 1) == Strings{"    ", "    return", "␍"});
    CHECK(text.pieces()[1].n_cells == 4);
    CHECK(from_left(text, 2) == Strings{"⟨1B⟩["});
}

TEST_CASE("broken text: letters that join across tokens are drawn together within a line") {
    CHECK(together(broken({"a", " مر", "ح", "با", " b"})) == Strings{"a", " مرحبا", " b"});
    CHECK(together(broken({"नम", "स्", "ते"})) == Strings{"नमस्ते"});
    CHECK(together(broken({"tre", "aty", "東", "京"})) == Strings{"tre", "aty", "東", "京"});
    CHECK(together(broken({"حبا", "مرح", "با"}, 6)) == Strings{"حبامرح", "با"});
    // 0xD9 0x85 is م, a letter that two tokens share.
    CHECK(together(broken({"⟨D9⟩", "⟨85⟩", "رحبا"})) == Strings{"م‿رحبا"});
    CHECK(together(broken({"f", "⟨C3⟩", "⟨BC⟩r"})) == Strings{"f", "ü", "‿r"});
    // An ideograph or an emoji is in the first of its tokens.
    CHECK(together(broken({"⟨E6⟩", "⟨97⟩⟨A5⟩", "本"})) == Strings{"日", "‿", "本"});
}

TEST_CASE("broken text: a token that is wider than a line continues in the next line") {
    const BrokenText text = broken({"ab", "cdefgh", "i"}, 4);
    CHECK(from_left(text, 0) == Strings{"ab"});
    CHECK(from_left(text, 1) == Strings{"cdef"});
    CHECK(from_left(text, 2) == Strings{"gh", "i"});
    CHECK_FALSE(text.pieces()[1].is_whole);
    CHECK(text.pieces()[3].is_whole);
}
