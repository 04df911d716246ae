#include "analysis/tables/terminal_text.h"

#include <catch2/catch.hpp>
#include <string>

using namespace kvscope::analysis;

TEST_CASE("clean text is unchanged") {
    for (const std::string text : {"", "snapkv @ 64", "Käse, 猫, 🙂, שלום"}) {
        CHECK(terminal_text(text, Lines::one) == text);
        CHECK(terminal_text(text, Lines::several) == text);
    }
    CHECK(terminal_text("a\n\tb", Lines::several) == "a\n\tb");
}

TEST_CASE("terminal commands are replaced by visible characters") {
    CHECK(terminal_text("a\x1b[31mb\x07\x7f", Lines::several) == "a␛[31mb␇␡");
    CHECK(terminal_text(std::string("a\0b\r\n", 5), Lines::several) == "a␀b␍\n");
    CHECK(terminal_text("a\r\n\tb", Lines::one) == "a␍ ␉b");
    CHECK(terminal_text("\u0085\u009B31m", Lines::one) == "⟨U+0085⟩⟨U+009B⟩31m");
    CHECK(terminal_text("a\u202Eb\u2066c\u2069\u2028", Lines::several) == "a⟨U+202E⟩b⟨U+2066⟩c⟨U+2069⟩⟨U+2028⟩");
    CHECK(terminal_text("K\xE4se \x9B", Lines::one) == "K⟨E4⟩se ⟨9B⟩");
}

TEST_CASE("output of any bytes contains no control characters") {
    std::string bytes;
    for (int first = 0; first < 256; ++first)
        for (int second = 0; second < 256; ++second) bytes += {static_cast<char>(first), static_cast<char>(second)};
    for (const Lines lines : {Lines::one, Lines::several}) {
        const std::string shown = terminal_text(bytes, lines);
        CHECK(terminal_text(shown, lines) == shown);
        for (size_t i = 0; i < shown.size(); ++i) {
            const auto byte = static_cast<unsigned char>(shown[i]);
            const bool is_control = byte < 0x20 || byte == 0x7F;
            const bool is_of_latin = byte == 0xC2 && static_cast<unsigned char>(shown[i + 1]) < 0xA0;
            REQUIRE_FALSE(is_of_latin);
            if (is_control) REQUIRE((lines == Lines::several && (byte == '\n' || byte == '\t')));
        }
    }
}

TEST_CASE("width of texts on a terminal") {
    CHECK(terminal_display_width("snapkv") == 6);
    CHECK(terminal_display_width("Käse") == 4);
    CHECK(terminal_display_width("ka\u0308se") == 4);
    CHECK(terminal_display_width("猫です") == 6);
    CHECK(terminal_display_width("\xFF") == 1);
}
