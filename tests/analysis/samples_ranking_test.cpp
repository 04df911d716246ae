#include <catch2/catch.hpp>

#include "analysis/ranking.h"
#include "tests/analysis/sample_figures.h"

using namespace kvscope;
using namespace kvscope::analysis;
using namespace kvscope::analysis::test;

namespace {

std::vector<std::string> column(const Table& table, const std::string& name) {
    std::vector<std::string> texts;
    for (size_t row = 0; row < table.rows.size(); ++row) {
        const Cell& found = cell(table, row, name);
        const auto* text = std::get_if<kvscope::SharedText>(&found);
        const auto* real = std::get_if<double>(&found);
        texts.push_back(text ? text->string() : real ? std::to_string(std::lround(*real)) : "");
    }
    return texts;
}

}  // namespace

TEST_CASE("samples are ranked by the score that is lost, and failed runs come last", "[rankings]") {
    using Texts = std::vector<std::string>;
    const SampleTrace sample;
    const FigureDefinition& samples = ranking_definition("samples");
    const Ranking all = make_ranking(samples, sample.reader(), {});
    CHECK(all.table.rows.size() == sample.reader().results("niah").size());
    const Texts lost = column(all.table, "lost");
    CHECK(std::ranges::is_sorted(Texts(lost.begin(), lost.end() - 1), std::greater()));
    CHECK(lost.front() == "1");
    CHECK(lost.back().empty());
    CHECK_THAT(column(all.table, "answer").back(), Catch::Matchers::StartsWith("failed"));

    FigureOptions options;
    options.runs = {"snapkv @ 24"};
    const Table one = make_ranking(samples, sample.reader(), options).table;
    CHECK(column(one, "policy") == Texts(4, "snapkv"));
    CHECK(column(one, "budget") == Texts(4, "24"));
    CHECK(column(one, "lost") == Texts{"1", "1", "0", "0"});  // right for length 100 only
    CHECK(column(one, "full_score") == Texts(4, "1"));
    options.runs = {"snapkv @ 24", "nothing"};
    CHECK_THROWS_WITH(make_ranking(samples, sample.reader(), options), Catch::Matchers::Contains("no run 'nothing'"));
}
