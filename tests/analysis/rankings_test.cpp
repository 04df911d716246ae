#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "analysis/drawing/figure_definition.h"
#include "analysis/measures/attention_kept.h"
#include "analysis/measures/attention_lost.h"
#include "tests/analysis/kept_example.h"
#include "tests/analysis/ranked_trace.h"
#include "trace/hdf5/hdf5.h"

using namespace kvscope;
using namespace kvscope::analysis;
using namespace kvscope::analysis::testing;

TEST_CASE("attention lost is the attention to dropped tokens, token by token", "[rankings]") {
    const auto sets = test::random_sets(2, 2, 30, 7);
    std::vector<float> attention;
    for (size_t i = 0; i < 2 * 4 * 30; ++i) attention.push_back(static_cast<float>((i * 37) % 101) + 1.0F);
    const auto kept = attention_kept(attention, 4, sets.view());
    for (size_t layer = 0; layer < 2; ++layer) {
        const auto of_layer = std::span<const float>(attention).subspan(layer * 120, 120);
        const auto lost = attention_lost(of_layer, 4, sets.view(), layer);
        double mean = 0;
        for (size_t head = 0; head < 4; ++head) mean += static_cast<double>(kept[layer * 4 + head]) / 4;
        CHECK(std::accumulate(lost.begin(), lost.end(), 0.0) == Approx(1 - mean));
        for (uint32_t token = 0; token < 30; ++token) {
            double expected = 0;
            for (size_t head = 0; head < 4; ++head) {
                const auto row = of_layer.subspan(head * 30, 30);
                if (!sets.keeps(layer, head / 2, token))
                    expected += static_cast<double>(row[token]) / std::accumulate(row.begin(), row.end(), 0.0) / 4;
            }
            CHECK(lost[token] == Approx(expected));
        }
    }
    CHECK(std::isnan(attention_lost(std::vector<float>(120, 0.0F), 4, sets.view(), 0)[3]));
    CHECK_THROWS_AS(attention_lost(std::vector<float>(90), 3, sets.view(), 0), std::invalid_argument);
    CHECK_THROWS_AS(attention_lost(std::vector<float>(7), 4, sets.view(), 0), std::invalid_argument);
}

TEST_CASE("sentences are sorted by A's loss minus B's", "[rankings]") {
    const RankedTrace made;
    const auto reader = made.reader();
    for (const auto& [a, b] : {std::pair<int, int>{1, 2}, {2, 1}, {4, 0}, {3, 4}}) {
        const Ranking ranking = ranked(reader, "sentences", {a, b});
        REQUIRE(ranking.table.rows.size() == 8);
        REQUIRE(ranking.of.size() == 8);
        std::set<int> firsts;
        for (size_t row = 0; row < 8; ++row) {
            const RankedSubject& of = ranking.of[row];
            firsts.insert(of.subject.token);
            CHECK(of.subject.token % 6 == 0);
            CHECK(of.last_token == of.subject.token + 5);
            CHECK(of.subject.run == a);
            double kept_a = 0, kept_b = 0, lost = 0;
            for (size_t i = 0; i < 6; ++i) {
                const size_t token = static_cast<size_t>(of.subject.token) + i;
                kept_a += made.kept_share(static_cast<size_t>(a), token) / 6;
                kept_b += made.kept_share(static_cast<size_t>(b), token) / 6;
                for (size_t layer = 0; layer < 3; ++layer)
                    lost += (made.lost(static_cast<size_t>(a), layer, token) -
                             made.lost(static_cast<size_t>(b), layer, token)) /
                            3;
            }
            CHECK(number(ranking, row, "kept_a") == Approx(kept_a));
            CHECK(number(ranking, row, "kept_b") == Approx(kept_b));
            CHECK(number(ranking, row, "difference") == Approx(kept_a - kept_b).margin(1e-12));
            CHECK(number(ranking, row, "attention_lost") == Approx(lost).margin(1e-6));
            CHECK(number(ranking, row, "kl_attention_lost") ==
                  Approx(made.kl_lost(static_cast<size_t>(a), static_cast<size_t>(of.subject.token), 6) -
                         made.kl_lost(static_cast<size_t>(b), static_cast<size_t>(of.subject.token), 6))
                      .margin(1e-6));
            CHECK(number(ranking, row, "tokens") == 6);
            CHECK(text(ranking, row, "text").ends_with("."));
            if (row == 0) continue;
            const double before = number(ranking, row - 1, "kl_attention_lost");
            CHECK(before >= number(ranking, row, "kl_attention_lost"));
            if (before == number(ranking, row, "kl_attention_lost"))
                CHECK(ranking.of[row - 1].subject.token < of.subject.token);
        }
        CHECK(firsts.size() == 8);
    }
}

TEST_CASE("sentences of a trace without losses × KL are sorted by the kept share", "[rankings]") {
    RankedTrace made;
    made.runs[2].kl_attention_lost.clear();
    const Ranking ranking = ranked(made.reader(), "sentences", {1, 2});
    CHECK_THAT(ranking.table.title, Catch::Contains("by kept share"));
    for (size_t row = 1; row < ranking.table.rows.size(); ++row)
        CHECK(number(ranking, row - 1, "difference") <= number(ranking, row, "difference"));
}

TEST_CASE("sentences are also ranked without attention, and for chosen layers", "[rankings]") {
    RankedTrace made;
    made.prompt.window_attention.clear();
    made.prompt.head_jsd.clear();
    const auto reader = made.reader();
    const Ranking ranking = ranked(reader, "sentences", {1, 2});
    for (size_t row = 0; row < ranking.table.rows.size(); ++row) CHECK(is_empty(ranking, row, "attention_lost"));
    FigureOptions options;
    options.runs = {1, 2};
    options.layers = {1};
    const Ranking of_layer = make_ranking(ranking_definition("sentences"), reader, options);
    const auto first = static_cast<size_t>(of_layer.of[0].subject.token);
    double kept = 0;
    for (size_t token = first; token < first + 6; ++token)
        kept += (made.part(1, 1, 0, token) + made.part(1, 1, 1, token)) / 12;
    CHECK(number(of_layer, 0, "kept_a") == Approx(kept));
}

TEST_CASE("heads and layers are sorted by their divergence", "[rankings]") {
    const RankedTrace made;
    const auto reader = made.reader();
    const Ranking heads = ranked(reader, "heads");
    REQUIRE(heads.table.rows.size() == 6);
    for (size_t row = 0; row < 6; ++row) {
        const Subject& of = heads.of[row].subject;
        CHECK(number(heads, row, "divergence") == Approx(made.jsd(static_cast<size_t>(of.layer), 0, 1)).epsilon(1e-4));
        CHECK(number(heads, row, "layer") == of.layer);
        CHECK(number(heads, row, "head") == of.head);
        if (row % 2 == 1) {  // two heads have equal divergences from each other
            CHECK(heads.of[row - 1].subject.layer == of.layer);
            CHECK(heads.of[row - 1].subject.head < of.head);
        }
        if (row > 0) CHECK(number(heads, row - 1, "divergence") >= number(heads, row, "divergence"));
    }
    const Ranking layers = ranked(reader, "layers", {1, 3});
    REQUIRE(layers.table.rows.size() == 3);
    for (size_t row = 0; row < 3; ++row) {
        const auto layer = static_cast<size_t>(layers.of[row].subject.layer);
        CHECK(static_cast<int>(layer) == heads.of[2 * row].subject.layer);
        CHECK(number(layers, row, "divergence") == Approx(made.jsd(layer, 0, 1)).epsilon(1e-4));
        for (const size_t run : {size_t{1}, size_t{3}}) {
            double lost = 0, covered = 0;
            for (size_t token = 0; token < made.n_tokens(); ++token) {
                lost += made.lost(run, layer, token);
                covered += made.part(run, layer, 0, token) + made.part(run, layer, 1, token) > 0 ? 1 : 0;
            }
            const std::string suffix = "_run_" + std::to_string(run);
            CHECK(number(layers, row, "attention_lost" + suffix) == Approx(lost).epsilon(1e-4));
            CHECK(number(layers, row, "coverage" + suffix) == Approx(covered / static_cast<double>(made.n_tokens())));
        }
    }
}

TEST_CASE("losses sorts heads by the attention that each head of a run lost", "[rankings]") {
    const RankedTrace made;
    const Ranking losses = ranked(made.reader(), "losses", {1, 3});
    REQUIRE(losses.table.rows.size() == 2 * 3 * 2);
    for (size_t row = 0; row < losses.table.rows.size(); ++row) {
        const Subject& of = losses.of[row].subject;
        double lost = 0, entries = 0;
        for (size_t token = 0; token < made.n_tokens(); ++token) {
            const double part = made.part(static_cast<size_t>(of.run), static_cast<size_t>(of.layer),
                                          static_cast<size_t>(of.head), token);
            entries += part / static_cast<double>(made.n_tokens());
            if (part > 0) continue;
            for (size_t q = 0; q < 2; ++q) {
                const size_t head = static_cast<size_t>(of.layer) * 4 + static_cast<size_t>(of.head) * 2 + q;
                lost += static_cast<double>(made.prompt.window_attention[head * made.n_tokens() + token]) / 2;
            }
        }
        CHECK(number(losses, row, "attention_lost") == Approx(lost).epsilon(1e-4));
        CHECK(number(losses, row, "entries_share") == Approx(entries));
        if (row > 0) CHECK(number(losses, row - 1, "attention_lost") >= number(losses, row, "attention_lost"));
    }
}

TEST_CASE("range sorts runs by the share of the range that they keep, with bytes, attention and scores", "[rankings]") {
    const RankedTrace made;
    const trace::Reader reader = made.reader();
    FigureOptions options;
    options.runs = {1, 3, 4};
    options.tokens = TokenRange{10, 33};
    const Ranking range = make_ranking(ranking_definition("range"), reader, options);
    REQUIRE(range.table.rows.size() == 3);
    CHECK(range.table.title == "Runs ranked by their kept share of tokens 10 to 33");
    for (size_t row = 0; row < 3; ++row) {
        const auto run = static_cast<size_t>(range.of[row].subject.run);
        CAPTURE(run);
        double kept = 0, lost = 0, all = 0, bytes = 0;
        int64_t n_tokens = 0;
        for (size_t token = 10; token <= 33; ++token) {
            kept += made.kept_share(run, token) / 24;
            n_tokens += made.kept_share(run, token) > 0;
            for (size_t layer = 0; layer < 3; ++layer) {
                lost += made.lost(run, layer, token) / 3;
                for (size_t head = 0; head < 4; ++head)
                    all += static_cast<double>(
                               made.prompt.window_attention[(layer * 4 + head) * made.n_tokens() + token]) /
                           12;
            }
        }
        for (size_t layer = 0; layer < 3; ++layer) {
            double within = 0, entries = 0;
            for (size_t token = 0; token < made.n_tokens(); ++token)
                for (size_t head = 0; head < 2; ++head) {
                    entries += made.part(run, layer, head, token);
                    if (token >= 10 && token <= 33) within += made.part(run, layer, head, token);
                }
            bytes += static_cast<double>(made.runs[run].cache_bytes[layer]) * within / entries;
        }
        CHECK(number(range, row, "kept_share") == Approx(kept));
        CHECK(number(range, row, "tokens") == static_cast<double>(n_tokens));
        CHECK(number(range, row, "bytes") == Approx(bytes).margin(0.6));
        CHECK(number(range, row, "attention") == Approx(all).epsilon(1e-4));
        if (run != 4) {
            CHECK(number(range, row, "attention_lost") == Approx(lost).epsilon(1e-4));
            CHECK(number(range, row, "kl_attention_lost") == Approx(made.kl_lost(run, 10, 24)).epsilon(1e-4));
        } else {
            CHECK(is_empty(range, row, "attention_lost"));
            CHECK(is_empty(range, row, "kl_attention_lost"));
        }
        if (row > 0) CHECK(number(range, row - 1, "kept_share") >= number(range, row, "kept_share"));
        double sum = 0, least = INFINITY, most = -INFINITY;
        size_t n = 0;
        if (!reader.has(trace::Place::of_run(0, static_cast<int>(run)), trace::schema::run::scores)) {
            CHECK(is_empty(range, row, "score_mean"));
            continue;
        }
        for (size_t layer = 0; layer < 3; ++layer) {
            const auto scores = reader.scores(0, static_cast<int>(run), layer);
            for (size_t i = 0; i < scores.size(); ++i) {
                const size_t token = i % made.n_tokens();
                if (token < 10 || token > 33 || std::isnan(scores[i])) continue;
                sum += scores[i], ++n;
                least = std::min(least, scores[i]);
                most = std::max(most, scores[i]);
            }
        }
        REQUIRE(n > 0);
        CHECK(number(range, row, "score_mean") == Approx(sum / static_cast<double>(n)));
        CHECK(number(range, row, "score_least") == least);
        CHECK(number(range, row, "score_most") == most);
    }
    // The default range is the prompt, and a range outside it is rejected.
    options.tokens.reset();
    const Ranking whole = make_ranking(ranking_definition("range"), reader, options);
    CHECK(whole.table.title == "Runs ranked by their kept share of tokens 0 to 47");
    for (const auto& [first, last] : {std::pair{-1, 3}, {5, 4}, {40, 48}}) {
        options.tokens = TokenRange{first, last};
        CHECK_THROWS_WITH(make_ranking(ranking_definition("range"), reader, options),
                          Catch::Contains("policies see the prompt's tokens 0 to 47; "));
    }
    CHECK_THROWS_AS(make_ranking(ranking_definition("losses"), reader, options), FigureError);
}

TEST_CASE("kl-losses sorts sentences by the loss weighted by divergence") {
    RankedTrace made;
    made.runs[2].kl_attention_lost.clear();  // as in an older trace
    const auto reader = made.reader();
    const Ranking losses = ranked(reader, "kl-losses");
    REQUIRE(losses.table.rows.size() == 8);
    std::set<int> firsts;
    double before = INFINITY;
    for (size_t row = 0; row < 8; ++row) {
        const auto first = static_cast<size_t>(losses.of[row].subject.token);
        firsts.insert(static_cast<int>(first));
        CHECK(losses.of[row].last_token == losses.of[row].subject.token + 5);
        const double mean = (made.kl_lost(1, first, 6) + made.kl_lost(3, first, 6)) / 2;
        CHECK(number(losses, row, "kl_lost_run_1") == Approx(made.kl_lost(1, first, 6)));
        CHECK(number(losses, row, "kl_lost_run_3") == Approx(made.kl_lost(3, first, 6)));
        CHECK(number(losses, row, "kl_lost_mean") == Approx(mean));
        CHECK(mean <= before);
        before = mean;
    }
    CHECK(firsts.size() == 8);
    for (const auto& column : losses.table.columns)  // not recorded, or drops no token
        for (const char* name : {"kl_lost_run_2", "kl_lost_run_4", "kl_lost_run_5"}) CHECK(column.name != name);
    FigureOptions of_layer;
    of_layer.runs = {1};
    of_layer.layers = {2};
    const Ranking one = make_ranking(ranking_definition("kl-losses"), reader, of_layer);
    double sum = 0;
    for (size_t row = 0; row < 8; ++row) sum += number(one, row, "kl_lost_run_1");
    const auto layer = made.runs[1].kl_attention_lost.begin() + static_cast<std::ptrdiff_t>(2 * made.n_tokens());
    CHECK(sum == Approx(std::accumulate(layer, made.runs[1].kl_attention_lost.end(), 0.0)));
    for (const int run : {2, 4})
        CHECK(why_not([&] { ranked(reader, "kl-losses", {run}); }).find("kl_attention_lost") != std::string::npos);
}

TEST_CASE("losses are unknown for runs that drop no tokens", "[rankings]") {
    const RankedTrace made;
    const auto reader = made.reader();
    const Ranking layers = ranked(reader, "layers", {0, 1, 4, 5});
    for (size_t row = 0; row < layers.table.rows.size(); ++row) {
        CHECK(number(layers, row, "attention_lost_run_0") == Approx(0).margin(1e-6));
        CHECK(number(layers, row, "attention_lost_run_1") > 0);
        for (const char* name : {"attention_lost_run_4", "attention_lost_run_5"}) CHECK(is_empty(layers, row, name));
        CHECK(number(layers, row, "coverage_run_4") == 1);
    }
    FigureOptions marked;
    marked.own["mark"] = ".";
    marked.runs = {0, 1, 4, 5};
    const Ranking marks = make_ranking(ranking_definition("marks"), reader, marked);
    REQUIRE(!marks.table.rows.empty());
    for (size_t row = 0; row < marks.table.rows.size(); ++row) {
        CHECK(number(marks, row, "lost_run_0") == Approx(0).margin(1e-6));
        CHECK(!is_empty(marks, row, "lost_run_1"));
        CHECK(number(marks, row, "kl_lost_run_1") ==
              Approx(made.kl_lost(1, static_cast<size_t>(marks.of[row].subject.token), 1)));
        CHECK(number(marks, row, "kl_lost_run_0") == 0);
        for (const char* name : {"lost_run_4", "lost_run_5", "kl_lost_run_4"}) CHECK(is_empty(marks, row, name));
    }
    const Ranking losses = ranked(reader, "losses", {4, 1, 5});
    for (size_t row = 0; row < losses.table.rows.size(); ++row) {
        const bool is_lossy = losses.of[row].subject.run == 1;
        CHECK(is_lossy == (row < 6));
        CHECK(is_empty(losses, row, "attention_lost") == !is_lossy);
        CHECK(number(losses, row, "entries_share") > 0);
    }
}

TEST_CASE("missing data is reported with the option that records it", "[rankings]") {
    RankedTrace made;
    made.prompt.window_attention.clear();
    made.prompt.head_jsd.clear();
    made.runs[0].output_ids.clear();
    for (auto& run : made.runs) {
        run.step_kl.clear();
        run.step_agreement.clear();
    }
    const auto reader = made.reader();
    for (const char* name : {"heads", "layers", "losses"}) {
        const std::string why = why_not([&] { ranked(reader, name); });
        CHECK_THAT(why, Catch::Contains("full/window_attention") && Catch::Contains("kvscope run"));
    }
    CHECK_THAT(why_not([&] { ranked(reader, "answers"); }), Catch::Contains("no answer of the full run"));
    CHECK_THAT(why_not([&] { ranked(reader, "steps"); }), Catch::Contains("compared with the full run"));
    CHECK_THAT(why_not([&] { ranked(reader, "tokens", {1}); }), Catch::Contains("at least two runs"));
    CHECK_THAT(why_not([&] { ranked(reader, "sentences", {1}); }), Catch::Contains("A and B"));
    CHECK_THAT(why_not([&] { ranked(reader, "sentences", {"nothing"}); }), Catch::Contains("there is no run"));
}

TEST_CASE("rankings are found by name, and reject options that they do not use", "[rankings]") {
    for (const FigureDefinition& definition : ranking_definitions()) {
        CHECK(&ranking_definition(definition.name) == &definition);
        CHECK(!definition.title.empty());
        CHECK(definition.rank);
        CHECK(&figure_definition(definition.name) == &definition);
        const bool has_runs = std::any_of(definition.options.begin(), definition.options.end(),
                                          [](const auto& option) { return option.name == "runs"; });
        CHECK(has_runs == (definition.shown_runs || definition.runs_are_settings));
    }
    CHECK_THAT(why_not([] { return ranking_definition("best").name; }), Catch::Contains("sentences"));
    FigureOptions options;
    options.own["threshold"] = "1";
    CHECK_THAT(why_not([&] { check_options(ranking_definition("heads"), options); }),
               Catch::Contains("--threshold") && Catch::Contains("--layer"));
    options.own["threshold"] = "-1";
    CHECK_THAT(why_not([&] { check_options(ranking_definition("answers"), options); }), Catch::Contains("0 to 100"));
}
