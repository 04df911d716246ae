#include "analysis/tables/table_format.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "common/json.h"

using namespace kvscope::analysis;

namespace {

Table sample() {
    Table table;
    table.name = "sample";
    table.columns = {{"run", "Run", "", ColumnType::integer},
                     {"label", "Label", "", ColumnType::text},
                     {"kl_mean", "KL", "nats", ColumnType::real, 2, Best::lowest},
                     {"bytes", "Cache", "B", ColumnType::integer, 0, Best::lowest}};
    table.rows = {{{int64_t{0}, std::string("full"), 0.0, int64_t{1234567}}, true},
                  {{int64_t{1}, std::string("snap, \"kv\"\n64"), 0.25, int64_t{4000}}},
                  {{int64_t{2}, std::string("h2o_50%"), 0.1 + 0.2, int64_t{4000}}},
                  {{int64_t{3}, std::monostate{}, NAN, std::monostate{}}}};
    return table;
}

/// Parses CSV according to RFC 4180, as another program would.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
    std::vector<std::vector<std::string>> rows;
    std::vector<std::string> row;
    std::string field;
    bool quoted = false;
    for (size_t i = 0; i < text.size(); ++i) {
        if (quoted) {
            if (text[i] != '"') {
                field += text[i];
            } else if (i + 1 < text.size() && text[i + 1] == '"') {
                field += text[i++];
            } else {
                quoted = false;
            }
        } else if (text[i] == '"') {
            quoted = true;
        } else if (text[i] == ',' || text[i] == '\n') {
            row.push_back(std::exchange(field, ""));
            if (text[i] == '\n') rows.push_back(std::exchange(row, {}));
        } else {
            CHECK(text[i] != '\r');
            field += text[i];
        }
    }
    CHECK(field.empty());
    CHECK(row.empty());
    return rows;
}

}  // namespace

TEST_CASE("CSV can be read back with every digit") {
    const auto rows = parse_csv(format_table(sample(), TableFormat::csv));
    REQUIRE(rows.size() == 5);
    CHECK(rows[0] == std::vector<std::string>{"run", "label", "kl_mean", "bytes"});
    CHECK(rows[2] == std::vector<std::string>{"1", "snap, \"kv\"\n64", "0.25", "4000"});
    CHECK(std::stod(rows[3][2]) == 0.1 + 0.2);
    CHECK(rows[4] == std::vector<std::string>{"3", "", "NaN", ""});
}

TEST_CASE("JSON is an array of objects, JSONL is one object per line, and unknown values are null") {
    const auto json = nlohmann::json::parse(format_table(sample(), TableFormat::json));
    REQUIRE(json.size() == 4);
    CHECK(json[1]["label"] == "snap, \"kv\"\n64");
    CHECK(json[2]["kl_mean"] == 0.1 + 0.2);
    CHECK(json[3]["label"].is_null());
    CHECK(json[3]["kl_mean"].is_null());
    const std::string lines = format_table(sample(), TableFormat::jsonl);
    CHECK(std::count(lines.begin(), lines.end(), '\n') == 4);
    CHECK(nlohmann::json::parse(lines.substr(0, lines.find('\n')))["bytes"] == 1234567);
    Table empty = sample();
    empty.rows.clear();
    CHECK(format_table(empty, TableFormat::json) == "[]\n");
    CHECK(format_table(empty, TableFormat::jsonl).empty());
}

TEST_CASE("Markdown aligns columns and shows the best in bold, but not the control") {
    CHECK(format_table(sample(), TableFormat::markdown) ==
          "|Run|Label        |KL (nats)|Cache (B)|\n"
          "|--:|-------------|--------:|--------:|\n"
          "|  0|full         |     0.00|  1234567|\n"
          "|  1|snap, \"kv\" 64| **0.25**|     4000|\n"
          "|  2|h2o_50%      |     0.30|     4000|\n"
          "|  3|             |      NaN|         |\n");
}

TEST_CASE("HTML escapes texts, aligns numbers and marks the best number") {
    Table table = sample();
    table.title = "Runs & <scores>";
    const std::string html = format_table(table, TableFormat::html);
    CHECK(
        html.starts_with("<table>\n<caption>Runs &amp; &lt;scores&gt;</caption>\n<thead><tr><th class=\"number\">Run"
                         "</th><th>Label</th><th class=\"number\">KL (nats)</th>"));
    CHECK(html.find("<td>snap, &quot;kv&quot; 64</td><td class=\"number\"><b>0.25</b></td><td class=\"number\">4,000"
                    "</td>") != std::string::npos);
    CHECK(html.ends_with("</tbody>\n</table>\n"));
}

TEST_CASE("LaTeX escapes special characters and uses booktabs") {
    const std::string tex = format_table(sample(), TableFormat::latex);
    CHECK(tex.find("\\begin{tabular}{rlrr}\n\\toprule\nRun & Label & KL (nats) & Cache (B) \\\\\n\\midrule\n") !=
          std::string::npos);
    CHECK(tex.find("0 & full & 0.00 & 1,234,567 \\\\") != std::string::npos);
    CHECK(tex.find("2 & h2o\\_50\\% & 0.30 & 4,000 \\\\") != std::string::npos);
    CHECK(tex.find("\\textbf{0.25}") != std::string::npos);
    CHECK(tex.find("3 & -- & -- & -- \\\\") != std::string::npos);
    CHECK(tex.find("\\bottomrule\n\\end{tabular}\n") != std::string::npos);
}

TEST_CASE("LaTeX replaces characters that its default fonts lack, or names the needed engines") {
    Table table;
    table.columns = {{"a", "A − B", ""}, {"b", "Δ", ""}};
    table.rows = {{{std::string("<|im_start|>↵"), std::string("·Paris → é")}}};
    const std::string tex = format_table(table, TableFormat::latex);
    CHECK(tex.starts_with("% needs \\usepackage{booktabs}\n"));
    CHECK(tex.find("A $-$ B & $\\Delta$ ") != std::string::npos);
    CHECK(tex.find("\\textless{}\\textbar{}im\\_start\\textbar{}\\textgreater{}$\\hookleftarrow$ & $\\cdot$Paris "
                   "$\\rightarrow$ é") != std::string::npos);
    table.rows = {{{std::string("日本"), std::string("")}}};
    CHECK(format_table(table, TableFormat::latex).starts_with("% needs \\usepackage{booktabs}, and XeLaTeX"));
}

TEST_CASE("the best is determined by the displayed numbers, with ties and single candidates") {
    Table table;
    table.columns = {{"x", "", "", ColumnType::real, 1, Best::highest}};
    table.rows = {{{0.51}}, {{0.52}}, {{0.1}}};
    std::string md = format_table(table, TableFormat::markdown);
    CHECK(md.find("0.1") != std::string::npos);
    CHECK(md.find("|**0.5**|\n|**0.5**|\n|    0.1|") != std::string::npos);
    table.rows = {{{0.5}}};
    CHECK(format_table(table, TableFormat::markdown).find("**") == std::string::npos);
    table.rows = {{{0.5}}, {{0.5}}};
    CHECK(format_table(table, TableFormat::markdown).find("**") == std::string::npos);
}

TEST_CASE("plain text is aligned") {
    CHECK(format_table(sample(), TableFormat::text) ==
          "Run  Label          KL (nats)  Cache (B)\n"
          "  0  full                0.00  1,234,567\n"
          "  1  snap, \"kv\" 64       0.25      4,000\n"
          "  2  h2o_50%             0.30      4,000\n"
          "  3                       NaN\n");
}

TEST_CASE("formats for people omit empty columns, and formats for programs keep them") {
    Table table = sample();
    for (Row& row : table.rows) row.cells[1] = std::string();
    CHECK(format_table(table, TableFormat::text).find("Label") == std::string::npos);
    CHECK(format_table(table, TableFormat::markdown).find("Label") == std::string::npos);
    CHECK(format_table(table, TableFormat::latex).find("{rrr}") != std::string::npos);
    CHECK(format_table(table, TableFormat::csv).find("label") != std::string::npos);
    table.rows.clear();
    CHECK(format_table(table, TableFormat::text).find("Label") != std::string::npos);
}

TEST_CASE("numbers in formats for people") {
    CHECK(format_real(0.12345, 3) == "0.123");
    CHECK(format_real(0, 3) == "0.000");
    CHECK(format_real(3.2e-6, 3) == "3.20e-06");
    CHECK(format_real(-2.5e12, 1) == "-2.50e+12");
    CHECK(format_real(NAN, 3) == "NaN");
    CHECK(format_real(INFINITY, 3) == "inf");
    CHECK(format_count(0) == "0");
    CHECK(format_count(999) == "999");
    CHECK(format_count(1000) == "1,000");
    CHECK(format_count(-1234567) == "-1,234,567");
    CHECK(format_count(INT64_MIN) == "-9,223,372,036,854,775,808");
}

TEST_CASE("formats are found by name, and a table with unequal rows is rejected") {
    CHECK(table_format_from_name("tex") == TableFormat::latex);
    CHECK(table_format_from_name("jsonl") == TableFormat::jsonl);
    CHECK_THROWS_WITH(table_format_from_name("xls"), Catch::Matchers::Contains("csv"));
    Table table = sample();
    table.rows[0].cells.pop_back();
    for (const auto name : table_format_names()) {
        CHECK_THROWS_AS(format_table(table, table_format_from_name(name)), std::invalid_argument);
    }
}

TEST_CASE("tables for people contain no terminal commands, and tables for programs are unchanged") {
    Table table{"hostile", "", {{"name", "Name\x1b[2J", ""}}, {{{std::string("a\x1b[31m\u202Eb\nc")}}}};
    for (const auto format : {TableFormat::text, TableFormat::markdown, TableFormat::latex}) {
        const std::string shown = format_table(table, format);
        CHECK(shown.find('\x1b') == std::string::npos);
        CHECK(shown.find("\u202E") == std::string::npos);
    }
    CHECK(format_table(table, TableFormat::text) == "Name␛[2J\na␛[31m⟨U+202E⟩b c\n");
    CHECK(nlohmann::json::parse(format_table(table, TableFormat::jsonl))["name"] == "a\x1b[31m\u202Eb\nc");
    CHECK(parse_csv(format_table(table, TableFormat::csv))[1][0] == "a\x1b[31m\u202Eb\nc");
}

TEST_CASE("JSON in a cell is an object in JSON formats and text in other formats") {
    Table table{"runs", "", {{"parameters", "", ""}}, {{{std::string(R"({"window":8})")}}, {{std::string("{broken")}}}};
    table.columns[0].is_json = true;
    const auto rows = nlohmann::json::parse(format_table(table, TableFormat::json));
    CHECK(rows[0]["parameters"]["window"] == 8);
    CHECK(rows[1]["parameters"] == "{broken");
    CHECK(parse_csv(format_table(table, TableFormat::csv))[1][0] == R"({"window":8})");
}

TEST_CASE("the best of a column is determined within each group of rows") {
    Table table{"t", "T", {{"name", "Name", ""}, {"kl", "KL", "", ColumnType::real, 2, Best::lowest}}, {}};
    for (const auto& [group, value] : {std::pair<const char*, double>{"0: entries 64", 0.4},
                                       {"0: entries 64", 0.3},
                                       {"0: entries 128", 0.2},
                                       {"0: entries 128", 0.1},
                                       {"1: entries 64", 0.05}})
        table.rows.push_back({{std::string("run"), value}, false, group});
    table.rows.push_back({{std::string("full"), 0.0}, true, "0: entries 64"});
    const std::string latex = format_table(table, TableFormat::latex);
    CHECK(latex.find("\\textbf{0.30}") != std::string::npos);
    CHECK(latex.find("\\textbf{0.10}") != std::string::npos);
    for (const char* other : {"0.40", "0.20", "0.05", "0.00"})
        CHECK(latex.find(std::string("\\textbf{") + other) == std::string::npos);
}

TEST_CASE("texts that a spreadsheet would read as formulas can be escaped, and numbers stay") {
    const Table table{"t",
                      "T",
                      {{"text", "Text", ""}, {"-x", "X", "", ColumnType::real}, {"n", "N", "", ColumnType::integer}},
                      {{{std::string("=1+1"), -0.5, int64_t{-3}}},
                       {{std::string("+a"), -0.5, int64_t{-3}}},
                       {{std::string("-a"), -0.5, int64_t{-3}}},
                       {{std::string("@a"), -0.5, int64_t{-3}}},
                       {{std::string("\ta"), -0.5, int64_t{-3}}},
                       {{std::string("\ra"), -0.5, int64_t{-3}}},
                       {{std::string("a=1"), -0.5, int64_t{-3}}},
                       {{std::string(), -0.5, int64_t{-3}}}}};
    CHECK(format_table(safe_for_spreadsheets(table), TableFormat::csv) ==
          "text,'-x,n\n'=1+1,-0.5,-3\n'+a,-0.5,-3\n'-a,-0.5,-3\n'@a,-0.5,-3\n'\ta,-0.5,-3\n\"'\ra\",-0.5,-3\na=1,-0.5,-"
          "3\n"
          "\"\",-0.5,-3\n");
    CHECK(format_table(table, TableFormat::csv).find('\'') == std::string::npos);
}

TEST_CASE("tables for people omit a column that repeats another") {
    Table table{"t", "", {{"held", "Held", "B", ColumnType::integer}, {"predicted", "Predicted", "B"}}, {}};
    table.columns[1].type = ColumnType::integer;
    table.columns[1].repeats = "held";
    table.rows = {{{int64_t{5}, int64_t{5}}}, {{int64_t{7}, int64_t{7}}}, {{std::monostate{}, std::monostate{}}}};
    CHECK(format_table(table, TableFormat::text).find("Predicted") == std::string::npos);
    CHECK(format_table(table, TableFormat::csv).starts_with("held,predicted\n5,5\n"));
    table.rows[1].cells[1] = int64_t{8};
    CHECK(format_table(table, TableFormat::markdown).find("Predicted") != std::string::npos);
}
