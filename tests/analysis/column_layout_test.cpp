#include "analysis/tables/column_layout.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "analysis/tables/terminal_text.h"

using namespace kvscope::analysis;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

size_t widest(const std::string& text) {
    size_t width = 0;
    for (const auto& line : lines_of(text)) width = std::max(width, terminal_display_width(line));
    return width;
}

const TextCells policies = {
    {"Policy", "Keeps"},
    {"streaming-llm", "the first tokens and the last ones, whatever they say, so that a stream never ends"},
    {"h2o", "heavy hitters"},
};

/// Returns a table with a key column and many columns of numbers, as the table of runs.
TextCells wide_table(size_t n_numbers) {
    TextCells cells = {{"Run", "Label"}, {"0", "full"}, {"1", "snapkv @ 64"}};
    for (size_t i = 0; i < n_numbers; ++i) {
        cells[0].push_back("Number " + std::to_string(i));
        cells[1].push_back("1.25");
        cells[2].push_back("12345.5");
    }
    return cells;
}

std::vector<bool> numbers_of(const TextCells& cells) {
    std::vector<bool> are(cells[0].size(), true);
    are[1] = false;
    return are;
}

}  // namespace

TEST_CASE("a table without a given width has its natural width") {
    CHECK(format_aligned_columns({{"N", "Label"}, {"1", "a b"}, {"20", "c"}}, {true, false}, 0) ==
          " N  Label\n 1  a b\n20  c\n");
    CHECK(lines_of(format_aligned_columns(policies, {false, false}, 0)).size() == 3);
}

TEST_CASE("text is broken at spaces if a table is too wide, and no word is lost") {
    const std::string shown = format_aligned_columns(policies, {false, false}, 50);
    CHECK(widest(shown) <= 50);
    CHECK(lines_of(shown)[0] == "Policy         Keeps");
    CHECK(lines_of(shown)[1] == "streaming-llm  the first tokens and the last ones,");
    CHECK(lines_of(shown)[2] == "               whatever they say, so that a stream");
    CHECK(lines_of(shown).back() == "h2o            heavy hitters");
    CHECK(widest(format_aligned_columns(policies, {false, false}, 500)) ==
          widest(format_aligned_columns(policies, {false, false}, 0)));
}

TEST_CASE("columns that do not fit follow below, with the key columns") {
    const TextCells cells = wide_table(20);
    for (const size_t width : {40, 80, 100, 200}) {
        const std::string shown = format_aligned_columns(cells, numbers_of(cells), width);
        CAPTURE(width, shown);
        CHECK(widest(shown) <= width);
        const auto lines = lines_of(shown);
        const auto n_parts = std::count(lines.begin(), lines.end(), "") + 1;
        CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
                  return line.find("snapkv @ 64") != std::string::npos;
              }) == n_parts);
        for (size_t i = 0; i < 20; ++i) {  // headings may be broken: "Number" above "7"
            size_t n_values = 0;
            for (size_t at = 0; (at = shown.find("12345.5", at)) != std::string::npos; ++at) ++n_values;
            REQUIRE(n_values == 20);
        }
    }
}

TEST_CASE("words longer than a column are broken, and wide characters count as two columns") {
    CHECK(break_into_lines("abcdefgh ij", 4) == std::vector<std::string>{"abcd", "efgh", "ij"});
    CHECK(break_into_lines("", 4) == std::vector<std::string>{""});
    CHECK(break_into_lines("ab cd", 5) == std::vector<std::string>{"ab cd"});
    CHECK(break_into_lines("猫猫猫", 4) == std::vector<std::string>{"猫猫", "猫"});
    CHECK(break_into_lines("猫", 1) == std::vector<std::string>{"猫"});
}
