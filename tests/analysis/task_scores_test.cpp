#include "analysis/runs/task_scores.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <utility>

#include "analysis/drawing/figure_definition.h"
#include "analysis/results/result.h"
#include "analysis/runs/rename_runs.h"
#include "analysis/runs/row_settings.h"
#include "common/json.h"
#include "tests/analysis/sample_figures.h"

using namespace kvscope;
using namespace kvscope::analysis;

namespace {

trace::ResultRow row(int sample, const std::string& policy, int64_t budget, double score) {
    trace::ResultRow one;
    one.sample_id = std::to_string(sample);
    one.policy = policy;
    one.parameters_json = "{}";
    one.budget = budget;
    one.budget_fraction = 0.25;
    one.score = score;
    return one;
}

/// 60 samples: full is right in all except `full_wrong`, snapkv in every second one at 64 and in all at 128.
std::vector<trace::ResultRow> results(int full_wrong, int random_right) {
    std::vector<trace::ResultRow> rows;
    for (int i = 0; i < 60; ++i) {
        rows.push_back(row(i, "full", 1000 + i, i >= full_wrong));
        rows.push_back(row(i, "snapkv", 64, i % 2));
        rows.push_back(row(i, "snapkv", 128, 1));
        rows.push_back(row(i, "random", 64, i < random_right));
    }
    return rows;
}

std::string validity_of(const std::vector<trace::ResultRow>& rows) {
    return assess_task_validity(group_results_by_setting_and_budget(rows));
}

std::string first_obstacle_of(const std::vector<trace::ResultRow>& rows) {
    return first_obstacle_to_comparison(group_results_by_setting_and_budget(rows));
}

}  // namespace

TEST_CASE("questions about one context are one cluster of the interval", "[task-scores]") {
    std::vector<trace::ResultRow> rows = results(0, 0);
    for (size_t i = 0; i < rows.size(); ++i) rows[i].context_hash = i < rows.size() / 2 ? "a" : "b";
    const auto of_two_contexts = group_results_by_setting_and_budget(rows)[0].mean_score();
    CHECK(of_two_contexts.n == 60);
    CHECK(of_two_contexts.n_clusters == 2);
    for (trace::ResultRow& row : rows) row.context_hash.clear();  // a trace of version 1.1
    CHECK(group_results_by_setting_and_budget(rows)[0].mean_score().n_clusters == 60);
}

TEST_CASE("scores of one context have no interval", "[task-scores]") {
    const auto text = [](std::vector<double> scores) {
        const std::vector<std::string_view> contexts(scores.size(), "a");
        return score_text(estimate_score(scores, Clusters(contexts)),
                          [](double score) { return fmt::format("{:.2f}", score); });
    };
    CHECK(text({0, 1}) == "0.50");
    CHECK(text({1, 1}) == "1.00 [0.03, 1.00]");
}

TEST_CASE("scores are grouped by setting and budget, and the full run's scores over all lengths", "[task-scores]") {
    const auto rows = results(3, 0);
    const Table table = task_scores(group_results_by_setting_and_budget(rows));
    REQUIRE(table.rows.size() == 4);
    CHECK(table.rows[0].control);
    CHECK(std::get<kvscope::SharedText>(table.rows[0].cells[1]).string() == "all");
    CHECK(std::get<int64_t>(table.rows[0].cells[2]) == 60);
    CHECK(std::get<double>(table.rows[0].cells[3]) == Approx(0.95));
    CHECK(std::get<double>(table.rows[1].cells[3]) == Approx(0.5));
    const Table wide = task_scores_by_budget(group_results_by_setting_and_budget(rows));
    REQUIRE(wide.rows.size() == 3);
    REQUIRE(wide.columns.size() == 3);
    CHECK(wide.columns[2].title == "128");
    CHECK(std::get<kvscope::SharedText>(wide.rows[1].cells[2]).string() == "100.0 [94.0, 100.0]");
    CHECK(std::holds_alternative<std::monostate>(wide.rows[2].cells[2]));
    CHECK(std::get<kvscope::SharedText>(wide.rows[0].cells[1]).string().starts_with("95.0 ["));
    CHECK(wide.rows[0].cells[2] == wide.rows[0].cells[1]);
    CHECK_THROWS_AS(group_results_by_setting_and_budget({}), FigureError);
}

TEST_CASE("budgets ascend whatever their order in the results: entries, then shares", "[task-scores]") {
    std::vector<trace::ResultRow> rows;
    for (const int n : {541, 1041}) {
        rows.push_back(row(n, "full", n, 1));
        for (const int64_t budget : {128, 64, 1000}) {
            rows.push_back(row(n, "snapkv", budget, 1));
            rows.back().budget_fraction = static_cast<double>(budget) / n;
        }
        for (const double share : {0.4, 0.7}) {
            rows.push_back(row(n, "think", std::llround(share * n), 1));
            rows.back().budget_fraction = share;
        }
        rows.push_back(row(n, "h2o", std::llround(0.5 * n), 0));
        rows.back().budget_fraction = static_cast<double>(rows.back().budget) / n;
    }
    const Table wide = task_scores_by_budget(group_results_by_setting_and_budget(rows));
    std::vector<std::string> titles;
    for (const Column& column : wide.columns) titles.push_back(column.title);
    CHECK(titles == std::vector<std::string>{"Policy", "64", "128", "1000", "40 %", "50 %", "70 %"});
    CHECK(std::get<kvscope::SharedText>(wide.rows[3].cells[5]).string() == "0.0 [0.0, 84.2]");
    CHECK(std::holds_alternative<std::monostate>(wide.rows[3].cells[4]));
    const auto full_alone = std::span(rows).first(1);
    CHECK(task_scores_by_budget(group_results_by_setting_and_budget(full_alone)).columns.back().title == "all");
}

TEST_CASE("wrong answers that stop in mid-sentence are explained by too few tokens", "[task-scores]") {
    using Catch::Matchers::Contains;
    auto rows = results(10, 2);
    const auto says = [&](const std::string& answer) {
        for (auto& one : rows)
            if (one.policy == "full" && one.score < 0.5) one.prediction = answer;
        return validity_of(rows);
    };
    CHECK_THAT(
        says("The special magic number of the ladder is 48"),
        Contains("83.3 %") && Contains("All its 10 wrong answers stop in mid-sentence: allow more tokens with -n."));
    CHECK_THAT(says("The special magic number of the ladder is 481."), !Contains("-n"));
    CHECK_THAT(says("\"It is 481.\"\n"), !Contains("-n"));
    CHECK_THAT(says(""), !Contains("-n"));
    const auto of_one = std::ranges::find_if(rows, [](const auto& one) { return one.score < 0.5; });
    says("The number is 48");
    of_one->prediction = "It is 481.";
    CHECK_THAT(validity_of(rows), Contains("9 of its 10 wrong answers stop in mid-sentence"));
}

TEST_CASE("failed runs are counted and excluded from the mean", "[task-scores]") {
    auto rows = results(0, 0);
    rows[1].status = "failed";
    const Table table = task_scores(group_results_by_setting_and_budget(rows));
    CHECK(std::get<int64_t>(table.rows[1].cells[2]) == 59);
    CHECK(std::get<int64_t>(table.rows[1].cells[6]) == 1);
}

TEST_CASE("models of one table have rows and verdicts of their own", "[task-scores]") {
    using Catch::Matchers::Contains;
    auto rows = results(0, 2);
    for (auto& one : rows) one.model = "a/good";
    for (auto& one : results(30, 2)) {
        rows.push_back(one);
        rows.back().model = "b/poor";
    }
    const Table table = task_scores(group_results_by_setting_and_budget(rows));
    REQUIRE(table.rows.size() == 8);
    CHECK(std::get<kvscope::SharedText>(table.rows[0].cells[0]).string() == "full, a/good");
    CHECK(std::get<double>(table.rows[0].cells[3]) == Approx(1));
    CHECK(std::get<kvscope::SharedText>(table.rows[4].cells[0]).string() == "full, b/poor");
    CHECK(std::get<double>(table.rows[4].cells[3]) == Approx(0.5));
    CHECK(task_scores_by_budget(group_results_by_setting_and_budget(rows)).rows.size() == 6);
    CHECK_THAT(validity_of(rows),
               Contains("a/good: Usable") && Contains("b/poor: The full run answers only 50.0 % correctly"));
}

TEST_CASE("one sample of two models is two samples", "[task-scores]") {
    std::vector<trace::ResultRow> rows = {row(0, "h2o", 64, 1), row(0, "h2o", 64, 0)};
    CHECK(task_scores(group_results_by_setting_and_budget(rows)).rows.size() == 2);  // repeated runs
    rows[0].model = "a";
    rows[1].model = "b";
    const Table table = task_scores(group_results_by_setting_and_budget(rows));
    REQUIRE(table.rows.size() == 2);
    CHECK(std::get<kvscope::SharedText>(table.rows[0].cells[0]).string() == "h2o, a");
    CHECK(std::get<kvscope::SharedText>(table.rows[1].cells[0]).string() == "h2o, b");
}

TEST_CASE("settings of other programs have their texts", "[task-scores]") {
    const auto label = [](const nlohmann::json& parameters) {
        auto one = row(0, "snapkv", 64, 1);
        one.source = "kvpress";
        one.parameters_json = parameters.dump();
        return group_results_by_setting_and_budget(std::span(&one, 1))[0].setting;
    };
    const auto of_press = [&](const char* press) { return label({{"press", press}, {"threshold", -4}}); };
    CHECK(of_press("SnapKVPress(window_size=64, kernel_size=5)") ==
          "snapkv:window_size=64,kernel_size=5,threshold=-4 (kvpress)");
    CHECK(of_press("AdaKVPress(press=SnapKVPress(window_size=8), alpha=0.2)") ==
          "snapkv:press=SnapKVPress(window_size=8),alpha=0.2,threshold=-4 (kvpress)");
    CHECK(of_press("SnapKVPress()") == "snapkv:threshold=-4 (kvpress)");
    CHECK(of_press("snapkv") == "snapkv:threshold=-4 (kvpress)");
    CHECK(label({{"kind", "mlp"}, {"list", {1, 2, 3}}}) == "snapkv:kind=mlp (kvpress)");
    CHECK(label("text") == "snapkv (kvpress)");
}

TEST_CASE("a table that is not usable gives the reason", "[task-scores]") {
    using Catch::Matchers::Contains;
    using Catch::Matchers::StartsWith;
    CHECK_THAT(validity_of(results(3, 2)), StartsWith("Usable: 60 samples; full is right in 95.0 %"));
    CHECK_THAT(validity_of(results(10, 2)), StartsWith("The full run answers only 83.3 % correctly; below 90 %"));
    CHECK_THAT(validity_of(results(0, 10)), StartsWith("The task is too easy: random at 64 is right in 16.7 %"));
    auto few = results(0, 0);
    few.resize(40);
    CHECK_THAT(validity_of(few), StartsWith("10 samples: only large differences can be found; use at least 60."));
    CHECK(assess_task_validity(group_results_by_setting_and_budget(few), Advice::hidden) ==
          "10 samples: only large differences can be found.");
    CHECK(first_obstacle_of(few) == "10 samples: only large differences can be found");
    CHECK(first_obstacle_of(results(10, 2)) == "the full run answers only 83.3 % correctly");
    CHECK(first_obstacle_of(results(3, 2)).empty());
}

TEST_CASE("a graded score is usable if the full run is distinguishably better than random", "[task-scores]") {
    using Catch::Matchers::Contains;
    using Catch::Matchers::StartsWith;
    auto rows = results(0, 0);
    for (size_t i = 0; i < rows.size(); ++i) {
        rows[i].metric = "qa_f1_score";
        if (rows[i].policy == "full") rows[i].score = 0.3 + 0.001 * static_cast<double>(i % 7);
        if (rows[i].policy == "random") rows[i].score = 0.2;
    }
    CHECK_THAT(validity_of(rows),
               StartsWith("Usable: 60 samples; full scores 30.") && Contains("random at 64 scores 20.0 %"));
    for (auto& one : rows)
        if (one.policy == "random") one.score = 0.3 + (one.sample_id.size() == 1 ? 0.05 : -0.005);
    CHECK_THAT(validity_of(rows), StartsWith("The full run's score of ") && Contains("not distinguishable"));
    std::erase_if(rows, [](const auto& one) { return one.policy == "random"; });
    CHECK_THAT(validity_of(rows), StartsWith("The chance level is unknown; add the policy `random`."));
}

TEST_CASE("rows with a seen and with a hidden question are separate groups", "[task-scores]") {
    std::vector<trace::ResultRow> rows;
    for (const int64_t seen : {1, 0})
        for (auto one : results(0, 0)) {
            one.question_seen = seen;
            if (seen == 0 && one.policy == "snapkv") one.score = 0;
            rows.push_back(std::move(one));
        }
    const Table table = task_scores(group_results_by_setting_and_budget(rows));
    REQUIRE(table.rows.size() == 8);
    CHECK(std::get<kvscope::SharedText>(table.rows[1].cells[0]).string() == "snapkv, question seen");
    CHECK(std::get<double>(table.rows[1].cells[3]) == Approx(0.5));
    CHECK(std::get<kvscope::SharedText>(table.rows[5].cells[0]).string() == "snapkv, question hidden");
    CHECK(std::get<double>(table.rows[5].cells[3]) == 0);
    CHECK(std::get<int64_t>(table.rows[5].cells[2]) == 60);
    const Table wide = task_scores_by_budget(group_results_by_setting_and_budget(rows));
    REQUIRE(wide.rows.size() == 6);
    CHECK(std::get<kvscope::SharedText>(wide.rows[3].cells[0]).string() == "full, question hidden");
    const std::string usable = "Usable: 60 samples; full is right in 100.0 %, random at 64 in 0.0 %.";
    CHECK(validity_of(rows) == fmt::format("question hidden: {0} question seen: {0}", usable));
    const auto hidden = std::span(rows).subspan(rows.size() / 2);
    CHECK(std::get<kvscope::SharedText>(task_scores(group_results_by_setting_and_budget(hidden)).rows[1].cells[0])
              .string() == "snapkv");  // all rows are alike
}

TEST_CASE("the windows of a task's policies are listed, including defaults", "[task-scores]") {
    std::vector<trace::ResultRow> rows(5);
    rows[0].policy = "full";
    rows[1].policy = "snapkv";
    rows[1].parameters_json = R"({"window": 32})";
    rows[2].policy = "h2o";
    rows[3].policy = "snapkv";
    rows[3].parameters_json = R"({"window": 8})";
    rows[4].policy = "of another program";
    CHECK(describe_policy_windows(rows) == "window of 8 queries: snapkv:window=8; of 32 queries: snapkv");
    CHECK(describe_policy_windows(std::span(rows).first(1)).empty());
}

TEST_CASE("a share is shown as it was given, whatever number of entries it is in each sample", "[task-scores]") {
    const auto asked = [](const std::string& policy, std::initializer_list<int> lengths, double share, bool by_bytes) {
        std::vector<trace::ResultRow> rows;
        for (const int n : lengths) {
            rows.push_back(row(n, policy, std::llround(share * n), 1));
            rows.back().budget_fraction = by_bytes ? share : static_cast<double>(rows.back().budget) / n;
        }
        return rows;
    };
    const auto budgets = [](std::initializer_list<std::vector<trace::ResultRow>> all) {
        std::vector<trace::ResultRow> rows;
        for (const auto& some : all) rows.insert(rows.end(), some.begin(), some.end());
        std::vector<std::string> found;
        for (const auto& group : group_results_by_setting_and_budget(rows)) found.push_back(group.budget);
        return found;
    };
    using Names = std::vector<std::string>;
    CHECK(budgets({asked("snapkv", {541, 1041, 2033}, 0.5, false)}) == Names{"50 %"});
    CHECK(budgets({asked("snapkv", {541, 1041, 2033}, 0.125, false)}) == Names{"12.5 %"});
    CHECK(budgets({asked("snapkv", {541, 1041}, 0.7, false), asked("think", {541, 1041}, 0.7, true)}) ==
          Names{"70 %", "70 %"});
    // With one length, a share looks like a number of entries unless another policy has a budget of bytes.
    CHECK(budgets({asked("snapkv", {541}, 0.5, false)}) == Names{"271"});
    CHECK(budgets({asked("think", {541}, 0.5, true)}) == Names{"50 %"});
    CHECK(budgets({asked("snapkv", {541}, 0.5, false), asked("think", {541}, 0.5, true)}) == Names{"50 %", "50 %"});
    CHECK(budgets({asked("snapkv", {541}, 0.6, false), asked("think", {541}, 0.5, true)}) == Names{"325", "50 %"});
    auto counts = asked("snapkv", {541, 1041}, 0.5, false);
    for (auto& one : counts) one.budget_fraction = 128.0 / std::stod(one.sample_id);
    for (auto& one : counts) one.budget = 128;
    CHECK(budgets({counts}) == Names{"128"});
    // For a policy that keeps every token, the same number is a number of bytes.
    auto bytes = counts;
    for (auto& one : bytes) one.policy = "think";
    CHECK(budgets({counts, bytes}) == Names{"128", "bytes of 128"});
    std::vector<trace::ResultRow> both = counts;
    both.insert(both.end(), bytes.begin(), bytes.end());
    CHECK(distinct_budgets(group_results_by_setting_and_budget(both)) == Names{"128", "bytes of 128"});
    const Table table = task_scores(group_results_by_setting_and_budget(both));
    CHECK(test::cell(table, 0, "budget_of") == Cell("entries"));
    CHECK(test::cell(table, 1, "budget_of") == Cell("bytes"));
}

TEST_CASE("each requested budget is a group, even if several keep equally many entries", "[task-scores]") {
    std::vector<trace::ResultRow> rows;
    for (int sample = 0; sample < 2; ++sample) {
        rows.push_back(row(0, "full", 185, 1));  // names of samples may repeat
        for (const char* budget : {"0.2", "0.21", "0.22", "40"}) {
            rows.push_back(row(0, "random", 40, sample));
            rows.back().requested_budget = budget;
        }
        rows.push_back(row(0, "random", 0, 0));
        rows.back().requested_budget = "0.001";
        rows.back().status = "failed: no entry";
    }
    std::vector<std::string> found;
    for (const auto& group : group_results_by_setting_and_budget(rows))
        found.push_back(fmt::format("{} {}", group.budget, group.answered.size()));
    CHECK(found == std::vector<std::string>{"all 2", "20 % 2", "21 % 2", "22 % 2", "40 2", "0.1 % 0"});
    rows[1].requested_budget = "of a later version";
    CHECK(group_results_by_setting_and_budget(rows)[1].budget == "40");
}

TEST_CASE("task scores: entries and bytes share an axis only as shares of the full cache", "[task-scores]") {
    const trace::sample::TemporaryFolder folder;
    std::vector<trace::ResultRow> rows;
    for (const int n : {500, 1000})
        for (const char* policy : {"snapkv", "think"}) {
            rows.push_back(row(n, policy, 100, 1));
            rows.back().budget_fraction = 100.0 / n;
        }
    {
        trace::Writer writer(folder / "t.h5", trace::sample::recipe, {.generator = "sample"});
        trace::sample::write_parts(writer);
        writer.write_results("niah", 0, rows);
        writer.finish();
    }
    std::vector<trace::Reader> readers;
    readers.emplace_back(folder / "t.h5");
    const trace::Reader& reader = readers.front();
    FigureOptions options;
    options.source = "curves";
    options.setting_labels = new_labels_of_settings(readers, {"think=ThinK"});
    const Figure figure = test::made(reader, "task-scores", options);
    CHECK(figure.panels.at(0).x.unit == "% of the full cache");
    for (size_t i = 0; i < 2; ++i) CHECK(test::layer_of<Line>(figure, 0, i).x.at(0) == Approx(15));
    CHECK(test::layer_of<Line>(figure, 0, 1).label == "ThinK");
    options.source = "";
    CHECK(test::made(reader, "task-scores", options).panels.at(0).x.unit.empty());
    CHECK(test::cell(test::table_of(reader, "task-scores", options), 1, "policy") == Cell("ThinK"));
}

TEST_CASE("task scores: a curve goes from the smallest to the largest budget, whatever their order", "[task-scores]") {
    const trace::sample::TemporaryFolder folder;
    std::vector<trace::ResultRow> rows;
    for (int i = 0; i < 3; ++i)
        for (const int64_t budget : {128, 32, 64}) rows.push_back(row(i, "snapkv", budget, 1));
    // Counts and shares have one axis, of shares.
    for (const auto& [requested, share] : {std::pair("40", 0.4), std::pair("80", 0.8), std::pair("0.5", 0.5)}) {
        rows.push_back(row(3, "h2o", std::llround(100 * share), 1));
        rows.back().budget_fraction = share;
        rows.back().requested_budget = requested;
    }
    {
        trace::Writer writer(folder / "t.h5", trace::sample::recipe, {.generator = "sample"});
        trace::sample::write_parts(writer);
        writer.write_results("niah", 0, rows);
        writer.finish();
    }
    const trace::Reader reader(folder / "t.h5");
    FigureOptions options;
    options.source = "curves";
    const Figure figure = test::made(reader, "task-scores", options);
    CHECK(test::layer_of<Line>(figure, 0, 1).x == std::vector<double>{40, 50, 80});
    options.runs = {"snapkv"};
    CHECK(test::layer_of<Line>(test::made(reader, "task-scores", options), 0).x == std::vector<double>{32, 64, 128});
}

TEST_CASE("task scores: a table of settings by budgets, with intervals", "[task-scores]") {
    const test::SampleTrace sample;
    const Figure figure = test::made(sample.reader(), "task-scores", {});
    const Panel& panel = figure.panels.at(0);
    REQUIRE(panel.y.ticks.size() == 3);
    CHECK(panel.y.ticks[2].label == "aperturekv:window=4");
    REQUIRE(panel.x.ticks.size() == 2);
    const HeatMap& map = test::layer_of<HeatMap>(figure, 0);
    CHECK(map.values[0] == 100);  // full spans the whole row
    CHECK(map.values[1] == 100);
    CHECK(map.values[2] == 50);
    CHECK(map.values[3] == 75);
    CHECK(map.values[4] == 0);
    CHECK(std::isnan(map.values[5]));  // no run at 48
    CHECK(test::layer_of<TextLabel>(figure, 0, 2).text == "50 [0, 100]");
    CHECK_THAT(figure.caption, Catch::Matchers::Contains("4 samples of niah") &&
                                   Catch::Matchers::Contains("differences can be found. "));
    CHECK(test::table_of(sample.reader(), "task-scores", {}).rows.size() == 4);
}

TEST_CASE("task scores: curves by budget, with the full run as a line across", "[task-scores]") {
    const test::SampleTrace sample;
    FigureOptions options;
    options.source = "curves";
    options.runs = {"full", "snapkv"};
    const Figure figure = test::made(sample.reader(), "task-scores", options);
    CHECK(test::layer_of<Rule>(figure, 0, 0).value == 100);
    const Line& line = test::layer_of<Line>(figure, 0, 1);
    CHECK(line.x == std::vector<double>{24, 48});
    CHECK(line.y == std::vector<double>{50, 75});
    CHECK(line.low[1] < 75);
    CHECK(figure.panels[0].shapes.size() == 2);
    CHECK(test::table_of(sample.reader(), "task-scores", options).rows.size() == 3);
}

TEST_CASE("task scores: length across, depth down, one map per setting and budget", "[task-scores]") {
    const test::SampleTrace sample;
    FigureOptions options;
    options.source = "depths";
    options.runs = {"snapkv"};
    const Figure figure = test::made(sample.reader(), "task-scores", options);
    REQUIRE(figure.panels.size() == 2);
    CHECK(figure.panels[1].title == "snapkv @ 48");
    CHECK(test::layer_of<HeatMap>(figure, 1).values == std::vector<float>{100, 100, 100, 0});
    CHECK(test::table_of(sample.reader(), "task-scores", options).rows.size() == 8);
    CHECK(figure.panels[1].note == "75 %");
    CHECK(figure.color_scales.at(0).map == ColorMap::red_yellow_green);
    options.own["colors"] = "viridis";
    CHECK(test::made(sample.reader(), "task-scores", options).color_scales.at(0).map == ColorMap::viridis_reversed);
    options.runs = {"aperturekv:window=4"};
    CHECK(std::isnan(test::layer_of<HeatMap>(test::made(sample.reader(), "task-scores", options), 0).values[3]));
    options.runs = {"h2o"};
    CHECK_THROWS_WITH(test::made(sample.reader(), "task-scores", options),
                      Catch::Matchers::Contains("no run 'h2o'. There are aperturekv:window=4; full; snapkv"));
}

TEST_CASE("task scores: prompts with answers are scored like a task", "[task-scores]") {
    const trace::sample::TemporaryFolder folder;
    const trace::sample::Options three_prompts{.n_questions = 3};
    const auto write = [&](const char* file, const std::vector<trace::ResultRow>& rows) {
        trace::Writer writer(folder / file, trace::sample::recipe, {.generator = "sample"});
        trace::sample::write_parts(writer, three_prompts);
        if (!rows.empty()) writer.write_results(trace::schema::root::prompt_results, 0, rows);
        writer.finish();
    };
    write("computed.h5", {});
    auto rows = rows_of_prompts(trace::Reader(folder / "computed.h5"));
    write("unscored.h5", rows);
    CHECK_THROWS_AS(test::made(trace::Reader(folder / "unscored.h5"), "task-scores", {}), NothingToShow);
    CHECK_THROWS_WITH(test::made(trace::Reader(folder / "computed.h5"), "task-scores", {}),
                      Catch::Matchers::Contains("prompts with answers in a JSONL file"));

    const std::string without_answer = rows.back().sample_id;
    std::set<std::string> names;
    for (trace::ResultRow& row : rows) {
        names.insert(row.sample_id);
        if (row.sample_id == without_answer) continue;
        row.metric = "string_match_part";
        row.answers_json = "[\"58\"]";
        row.score = row.policy == "full" || names.size() == 1 ? 1 : 0;
    }
    REQUIRE(names.size() == 3);
    write("scored.h5", rows);
    const trace::Reader reader(folder / "scored.h5");
    const Figure figure = test::made(reader, "task-scores", {});
    CHECK(figure.title == "Scores of prompts");
    CHECK_THAT(figure.caption, Catch::Matchers::StartsWith("Mean scores over 2 prompts, with"));
    const Table table = test::table_of(reader, "task-scores", {});
    REQUIRE(table.rows.size() > 2);
    CHECK(test::cell(table, 0, "policy") == Cell("full"));
    CHECK(test::cell(table, 0, "samples") == Cell(int64_t{2}));
    CHECK(test::cell(table, 0, "score") == Cell(1.0));
    CHECK(test::cell(table, 1, "samples") == Cell(int64_t{2}));
    CHECK(test::cell(table, 1, "score") == Cell(0.5));
}

TEST_CASE("the reason of failed runs is given once per setting and budget", "[task-scores]") {
    auto rows = results(3, 0);
    CHECK(describe_failed_runs(group_results_by_setting_and_budget(rows)).empty());
    for (auto& one : rows) {
        if (one.policy == "snapkv" && one.budget == 64 && one.sample_id != "7") one.status = "failed: no room: 3 < 4";
        if (one.policy == "random" && one.sample_id == "7") one.status = "failed: the file is missing";
    }
    const auto failures = describe_failed_runs(group_results_by_setting_and_budget(rows));
    REQUIRE(failures.size() == 2);
    CHECK(failures[0] ==
          "snapkv @ 64 failed in 59 of 60 samples (0, 1, 2, 3, 4, 5, 6, 8, 9, 10 and 49 more): no room: 3 < 4");
    CHECK(failures[1] == "random @ 64 failed in 1 of 60 samples (7): the file is missing");
    for (auto& one : rows)
        if (one.policy == "snapkv" && one.budget == 64) one.status = "failed: no room: 3 < 4";
    CHECK(describe_failed_runs(group_results_by_setting_and_budget(rows))[0] ==
          "snapkv @ 64 failed in all 60 samples: no room: 3 < 4");
}

TEST_CASE("rows are grouped equally if samples have their runs in another order") {
    const auto row_of = [](const std::string& sample, const std::string& policy, int64_t budget) {
        trace::ResultRow one;
        one.sample_id = sample;
        one.policy = policy;
        one.budget = budget;
        one.requested_budget = policy == "full" ? "" : std::to_string(budget);
        return one;
    };
    // The third sample differs from the second only in its last rows; the fourth has fewer rows, the fifth more.
    const std::vector<trace::ResultRow> rows = {
        row_of("a", "full", 9),  row_of("a", "h2o", 2), row_of("a", "snapkv", 2), row_of("a", "snapkv", 2),
        row_of("b", "full", 9),  row_of("b", "h2o", 2), row_of("b", "snapkv", 2), row_of("b", "snapkv", 2),
        row_of("c", "full", 9),  row_of("c", "h2o", 2), row_of("c", "snapkv", 2), row_of("c", "h2o", 2),
        row_of("d", "full", 9),  row_of("d", "h2o", 2),  //
        row_of("e", "full", 9),  row_of("e", "h2o", 2), row_of("e", "snapkv", 4), row_of("e", "snapkv", 2),
        row_of("e", "snapkv", 2)};
    const std::vector<size_t> groups = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 4, 0, 1, 0, 1, 5, 2, 3};
    const std::vector<size_t> samples = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4, 4, 4, 4};
    const auto settings = settings_of_rows(rows);
    REQUIRE(settings.rows.size() == rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
        INFO(i);
        CHECK(settings.rows[i].group == groups[i]);
        CHECK(settings.rows[i].sample == samples[i]);
    }
}
