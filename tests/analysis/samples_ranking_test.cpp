#include <catch2/catch.hpp>
#include <cmath>

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
    CHECK(all.table.rows.size() == 3 * 4);  // without the rows of full
    CHECK(std::ranges::count(column(all.table, "policy"), "full") == 0);
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
    options.runs = {"full"};
    CHECK(column(make_ranking(samples, sample.reader(), options).table, "policy") == Texts(4, "full"));
}

TEST_CASE("samples with equal scores are ranked by KL, the largest first, in all tasks together", "[rankings]") {
    const trace::sample::TemporaryFolder folder;
    const auto write = [&](const std::string& file, const std::vector<std::string>& policies) {
        trace::Writer writer(folder / file, trace::sample::recipe, {.generator = "sample"});
        trace::sample::write_parts(writer);
        for (const std::string task : {"a", "b"}) {
            std::vector<trace::ResultRow> rows;
            for (int i = 0; i < 3; ++i) {
                for (const std::string& policy : policies) {
                    trace::ResultRow row;
                    row.sample_id = task + std::to_string(i);
                    row.policy = policy;
                    row.parameters_json = "{}";
                    row.budget = policy == "full" ? 100 : 24;
                    row.score = policy == "full" || i == 0 ? 1 : 0;
                    row.kl = policy == "full" ? NAN : i + (task == "b" ? 0.5 : 0);
                    rows.push_back(row);
                }
            }
            if (task == "a") rows.back().kl = NAN;
            writer.write_results(task, 0, rows);
        }
        writer.finish();
    };
    write("t.h5", {"full", "snapkv"});
    const FigureDefinition& samples = ranking_definition("samples");
    const Table table = make_ranking(samples, trace::Reader(folder / "t.h5"), {}).table;
    CHECK(column(table, "sample") == std::vector<std::string>{"b2", "b1", "a1", "a2", "b0", "a0"});
    write("full.h5", {"full"});
    CHECK_THROWS_WITH(make_ranking(samples, trace::Reader(folder / "full.h5"), {}),
                      Catch::Matchers::Contains("the full run is the only one"));
}

TEST_CASE("a sample without a full run, and one with two full runs", "[rankings]") {
    const trace::sample::TemporaryFolder folder;
    trace::Writer writer(folder / "t.h5", trace::sample::recipe, {.generator = "sample"});
    trace::sample::write_parts(writer);
    const auto row_of = [](const std::string& sample, const std::string& policy, double score, int64_t seen) {
        trace::ResultRow row;
        row.sample_id = sample;
        row.policy = policy;
        row.parameters_json = "{}";
        row.budget = 24;
        row.prediction = policy + std::to_string(seen);
        row.score = score;
        row.question_seen = seen;
        row.model = "m";  // without a model, the recipe says whether the question is seen
        return row;
    };
    std::vector<trace::ResultRow> rows = {row_of("a", "snapkv", 1, 1), row_of("a", "snapkv", 0, 0),
                                          row_of("b", "full", 1, 1), row_of("b", "full", 0, 1),
                                          row_of("b", "snapkv", 0, 1)};
    rows[3].repeat = 1;
    writer.write_results("niah", 0, rows);
    writer.finish();
    const Table table = make_ranking(ranking_definition("samples"), trace::Reader(folder / "t.h5"), {}).table;
    CHECK(column(table, "sample") == std::vector<std::string>{"b", "a", "a, question hidden"});
    CHECK(column(table, "full_score") == std::vector<std::string>{"1", "", ""});
    CHECK(std::holds_alternative<std::monostate>(cell(table, 1, "full_answer")));
    CHECK(std::holds_alternative<std::monostate>(cell(table, 1, "question")));
}
