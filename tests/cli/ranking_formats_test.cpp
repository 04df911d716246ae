// Each ranking has the same rows in every format. All in one process, because starting the program takes longer than a
// ranking.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "app/figures/export_figure.h"
#include "common/json.h"
#include "tests/trace/sample_trace.h"

using namespace kvscope;
using Json = nlohmann::ordered_json;

TEST_CASE("each ranking has the same rows in every format") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    const trace::Reader reader(folder / "t.h5");
    for (const auto& definition : analysis::ranking_definitions()) {
        CAPTURE(definition.name);
        const auto made = [&](const std::string& extension) {
            analysis::FigureOptions options;
            if (definition.name == "marks") options.own["mark"] = "w1";
            const auto output = folder / (definition.name + extension);
            figures::export_figure(reader, definition, options, output, {}, false);
            std::ifstream file(output);
            return std::string(std::istreambuf_iterator<char>(file), {});
        };
        const Json rows = Json::parse(made(".json"));
        REQUIRE(!rows.empty());
        Json lines = Json::array();
        std::istringstream jsonl(made(".jsonl"));
        for (std::string line; std::getline(jsonl, line);) lines.push_back(Json::parse(line));
        CHECK(lines == rows);
        std::string columns;
        for (const auto& [name, value] : rows[0].items()) columns += (columns.empty() ? "" : ",") + name;
        const std::string csv = made(".csv");
        CHECK(csv.substr(0, csv.find('\n')) == columns);
        const auto n_rows = static_cast<std::ptrdiff_t>(rows.size());
        const std::string md = made(".md");
        CHECK(std::count(md.begin(), md.end(), '\n') == n_rows + 2);
        std::istringstream tex(made(".tex"));
        std::ptrdiff_t n_ends = 0;
        for (std::string line; std::getline(tex, line);) n_ends += line.ends_with("\\\\");
        CHECK(n_ends == n_rows + 1);
    }
}
