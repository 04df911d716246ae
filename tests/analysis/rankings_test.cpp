#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "analysis/drawing/figure_definition.h"
#include "analysis/measures/attention_kept.h"
#include "analysis/measures/attention_lost.h"
#include "analysis/ranking.h"
#include "tests/analysis/kept_example.h"
#include "tests/trace/sample_trace.h"
#include "trace/hdf5/hdf5.h"
#include "trace/reader.h"

using namespace kvscope;
using namespace kvscope::analysis;

namespace {

namespace sample = trace::sample;

/// A trace of the sample model. A test may change its prompt and runs before it is written.
struct RankedTrace {
    sample::Options options;
    trace::PromptRecord prompt;
    std::vector<trace::RunRecord> runs;
    sample::TemporaryFolder folder;

    RankedTrace() {
        prompt = sample::prompt(options);
        for (size_t i = 0; i < prompt.token_text.size(); ++i)
            if (i % 6 == 5) prompt.token_text[i] += ".";
        runs = sample::runs(options, prompt);
    }
    trace::Reader reader() const {
        trace::Writer writer(folder / "t.h5", sample::recipe, {.force = true, .generator = "rankings_test"});
        writer.write_model(sample::model(options));
        writer.write_prompt(0, prompt);
        for (size_t j = 0; j < runs.size(); ++j) writer.write_run(0, static_cast<int>(j), runs[j]);
        writer.finish();
        return trace::Reader(folder / "t.h5");
    }

    size_t n_tokens() const { return static_cast<size_t>(options.n_tokens); }

    /// Returns the part of an entry that a row of a run holds of a token: 1, or 1/n in an entry of n.
    double part(size_t run, size_t layer, size_t row, size_t token) const {
        const trace::RunRecord& r = runs[run];
        const size_t rows = static_cast<size_t>(options.n_kv_heads);
        const size_t place = layer * rows + row;
        if (r.merged_token_entry.empty()) {
            const auto begin = r.kept_indices.begin() + static_cast<std::ptrdiff_t>(r.kept_offsets[place]);
            const auto end = r.kept_indices.begin() + static_cast<std::ptrdiff_t>(r.kept_offsets[place + 1]);
            return std::find(begin, end, token) != end ? 1 : 0;
        }
        const int32_t* entries = &r.merged_token_entry[place * n_tokens()];
        if (entries[token] < 0) return 0;
        return 1.0 / static_cast<double>(std::count(entries, entries + n_tokens(), entries[token]));
    }
    double kept_share(size_t run, size_t token) const {
        double sum = 0;
        for (size_t layer = 0; layer < 3; ++layer)
            for (size_t row = 0; row < 2; ++row) sum += part(run, layer, row, token);
        return sum / 6;
    }
    /// Returns the full run's attention in one layer, averaged over the query heads.
    double lost(size_t run, size_t layer, size_t token) const {
        double sum = 0;
        for (size_t head = 0; head < 4; ++head)
            if (part(run, layer, head / 2, token) == 0)
                sum += static_cast<double>(prompt.window_attention[(layer * 4 + head) * n_tokens() + token]) / 4;
        return sum;
    }
    /// Returns the loss of `count` tokens from `first`, averaged over layers; 0 for the full run.
    double kl_lost(size_t run, size_t first, size_t count) const {
        double sum = 0;
        for (size_t layer = 0; run > 0 && layer < 3; ++layer)
            for (size_t token = first; token < first + count; ++token)
                sum += static_cast<double>(runs[run].kl_attention_lost[layer * n_tokens() + token]) / 3;
        return sum;
    }
    double jsd(size_t layer, size_t a, size_t b) const {
        const size_t n = n_tokens(), prefix = n - static_cast<size_t>(options.window);
        const auto distribution = [&](size_t head) {
            std::vector<double> p(prefix);
            for (size_t i = 0; i < prefix; ++i)
                for (size_t q = 2 * head; q < 2 * head + 2; ++q)
                    p[i] += static_cast<double>(prompt.window_attention[(layer * 4 + q) * n + i]);
            const double sum = std::accumulate(p.begin(), p.end(), 0.0);
            for (double& value : p) value /= sum;
            return p;
        };
        const auto p = distribution(a), q = distribution(b);
        double sum = 0;
        for (size_t i = 0; i < prefix; ++i) {
            const double m = (p[i] + q[i]) / 2;
            sum += (p[i] > 0 ? p[i] * std::log(p[i] / m) : 0) / 2 + (q[i] > 0 ? q[i] * std::log(q[i] / m) : 0) / 2;
        }
        return sum;
    }
};

Ranking ranked(const trace::Reader& reader, const std::string& name, std::vector<RunChoice> runs = {}) {
    FigureOptions options;
    options.runs = std::move(runs);
    return make_ranking(ranking_definition(name), reader, options);
}

size_t column_of(const Ranking& ranking, const std::string& name) {
    const auto& columns = ranking.table.columns;
    const auto found = std::find_if(columns.begin(), columns.end(), [&](const auto& c) { return c.name == name; });
    REQUIRE(found != columns.end());
    return static_cast<size_t>(found - columns.begin());
}

double number(const Ranking& ranking, size_t row, const std::string& column) {
    const Cell& cell = ranking.table.rows.at(row).cells.at(column_of(ranking, column));
    if (const auto* whole = std::get_if<int64_t>(&cell)) return static_cast<double>(*whole);
    return std::get<double>(cell);
}

std::string text(const Ranking& ranking, size_t row, const std::string& column) {
    return std::get<std::string>(ranking.table.rows.at(row).cells.at(column_of(ranking, column)));
}

bool is_empty(const Ranking& ranking, size_t row, const std::string& column) {
    return std::holds_alternative<std::monostate>(ranking.table.rows.at(row).cells.at(column_of(ranking, column)));
}

std::string why_not(const std::function<void()>& rank) {
    try {
        rank();
    } catch (const std::exception& error) {
        return error.what();
    }
    return {};
}

}  // namespace

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

TEST_CASE("answers are sorted by their first difference from full, and equal answers come last", "[rankings]") {
    RankedTrace made;
    made.runs[1].output_ids = made.runs[0].output_ids;
    made.runs[2].output_ids = made.runs[0].output_ids;
    made.runs[2].output_ids[3] = 60;
    made.runs[3].output_ids = made.runs[0].output_ids;
    made.runs[3].output_ids.resize(2);
    made.runs[4].output_ids = made.runs[0].output_ids;
    made.runs[4].output_ids[3] = 61;
    made.runs[2].step_kl = {0.0F, 0.1F, 0.05F, 0.11F, 0.4F, 0.0F};
    const auto reader = made.reader();
    const Ranking answers = ranked(reader, "answers", {1, 2, 3, 4});
    std::vector<int> order, steps;
    for (const RankedSubject& of : answers.of) {
        order.push_back(of.subject.run);
        steps.push_back(of.subject.step);
    }
    CHECK(order == std::vector<int>{3, 2, 4, 1});
    CHECK(steps == std::vector<int>{2, 3, 3, -1});
    CHECK(text(answers, 3, "differs") == "never");
    CHECK(is_empty(answers, 3, "first_difference"));
    CHECK(text(answers, 0, "token_text") == "(ends)");
    CHECK(number(answers, 1, "first_step_above") == 3);  // 0.1 in f32 is not above 0.1 …
    CHECK(number(answers, 1, "kl_max") == Approx(0.4));
    CHECK(number(answers, 1, "kl_mean") == Approx(0.66 / 6));
    FigureOptions options;
    options.runs = {2};
    options.own["threshold"] = "0.3";
    CHECK(number(make_ranking(ranking_definition("answers"), reader, options), 0, "first_step_above") == 4);
    options.own["threshold"] = "1";
    CHECK(is_empty(make_ranking(ranking_definition("answers"), reader, options), 0, "first_step_above"));
}

TEST_CASE("the first different token is shown as it is written in the answer", "[rankings]") {
    RankedTrace made;
    // The prompt's tokens have known texts: " w1", " w2" … have the ids (7 i + 3) mod 64.
    const auto id = [](int token) { return (token * 7 + 3) % 64; };
    made.runs[0].output_ids = {id(1), id(2), id(3), 2};
    made.runs[0].output_text = " w1 w2 w3";
    made.runs[0].step_kl.resize(4);
    made.runs[0].step_agreement.resize(4);
    for (size_t j = 1; j < made.runs.size(); ++j) {
        if (made.runs[j].step_kl.empty()) continue;
        made.runs[j].step_kl.resize(4);
        made.runs[j].step_agreement.resize(4);
    }
    made.runs[1].output_ids = {id(1), id(4), 2};
    made.runs[1].output_text = " w1 w4";
    const auto reader = made.reader();
    const Ranking answers = ranked(reader, "answers", {1});
    CHECK(text(answers, 0, "token_text") == " w4");
    CHECK(text(answers, 0, "token_text_full") == " w2");
    const Ranking steps = ranked(reader, "steps", {1});
    for (size_t row = 0; row < 4; ++row) {
        const std::vector<std::string> expected = {" w1", " w2", " w3", ""};
        CHECK(text(steps, row, "token_text") == expected[static_cast<size_t>(steps.of[row].subject.step)]);
    }
}

TEST_CASE("tokens are sorted by the disagreement of the runs", "[rankings]") {
    const RankedTrace made;
    const Ranking tokens = ranked(made.reader(), "tokens", {1, 2, 4});
    REQUIRE(tokens.table.rows.size() == made.n_tokens());
    for (size_t row = 0; row < made.n_tokens(); ++row) {
        const auto token = static_cast<size_t>(tokens.of[row].subject.token);
        std::vector<double> kept;
        for (const size_t run : {size_t{1}, size_t{2}, size_t{4}}) {
            kept.push_back(made.kept_share(run, token));
            CHECK(number(tokens, row, "kept_run_" + std::to_string(run)) == Approx(kept.back()));
        }
        const double mean = (kept[0] + kept[1] + kept[2]) / 3;
        double variance = 0;
        for (const double share : kept) variance += (share - mean) * (share - mean) / 3;
        CHECK(number(tokens, row, "disagreement") == Approx(std::sqrt(variance)).margin(1e-9));
        CHECK(number(tokens, row, "range") ==
              Approx(*std::max_element(kept.begin(), kept.end()) - *std::min_element(kept.begin(), kept.end())));
        CHECK(number(tokens, row, "runs_keeping") ==
              std::count_if(kept.begin(), kept.end(), [](double share) { return share > 0; }));
        CHECK(text(tokens, row, "token_text") == made.prompt.token_text[token]);
        if (row == 0) continue;
        const double before = number(tokens, row - 1, "disagreement");
        CHECK(before >= number(tokens, row, "disagreement"));
        if (before == number(tokens, row, "disagreement"))
            CHECK(tokens.of[row - 1].subject.token < tokens.of[row].subject.token);
    }
}

TEST_CASE("tokens tie if equally many runs disagree, whichever runs these are", "[rankings]") {
    RankedTrace made;
    made.runs.resize(7, made.runs[1]);
    for (size_t run = 1; run < 7; ++run) {
        made.runs[run] = made.runs[1];
        made.runs[run].label = "run " + std::to_string(run);
        made.runs[run].kept_indices.clear();
        made.runs[run].kept_offsets = {0};
        made.runs[run].scores.clear();
        made.runs[run].attention_kept.clear();
        for (size_t row = 0; row < 6; ++row) {
            for (uint32_t token = 0; token < 40;
                 ++token)  // n of the six runs, beginning with a different run each time
                if ((token + run) % 6 < token % 7) made.runs[run].kept_indices.push_back(token);
            made.runs[run].kept_offsets.push_back(made.runs[run].kept_indices.size());
        }
    }
    const Ranking tokens = ranked(made.reader(), "tokens", {1, 2, 3, 4, 5, 6});
    std::map<int, std::set<double>> found;
    for (size_t row = 0; row < tokens.table.rows.size(); ++row) {
        const auto n = static_cast<int>(number(tokens, row, "runs_keeping"));
        found[std::min(n, 6 - n)].insert(number(tokens, row, "disagreement"));
    }
    CHECK(found.size() == 4);
    for (const auto& [n, values] : found) {
        CAPTURE(n, values);
        CHECK(values.size() == 1);
    }
}

TEST_CASE("steps are sorted by KL, equal ones by run and step, unknown ones last", "[rankings]") {
    RankedTrace made;
    made.runs[1].step_kl = {0.1F, 0.5F, 0.2F, std::nanf(""), 0.2F, 0.0F};
    made.runs[2].step_kl = {0.2F, 0.0F, 0.9F, 0.0F, 0.0F, 0.0F};
    const Ranking steps = ranked(made.reader(), "steps", {1, 2});
    std::vector<std::pair<int, int>> order;
    for (const RankedSubject& of : steps.of) order.emplace_back(of.subject.run, of.subject.step);
    CHECK(order == std::vector<std::pair<int, int>>{
                       {2, 2}, {1, 1}, {1, 2}, {1, 4}, {2, 0}, {1, 0}, {1, 5}, {2, 1}, {2, 3}, {2, 4}, {2, 5}, {1, 3}});
    CHECK(number(steps, 0, "kl") == Approx(0.9));
}

TEST_CASE("data sets of steps with different lengths are reported as damage with both lengths", "[rankings]") {
    const RankedTrace made;
    const auto path = made.reader().path();
    const size_t length = GENERATE(size_t{0}, size_t{4}, size_t{7});
    {
        const trace::h5::Guard guard;
        const trace::h5::Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
        const std::string place = "/prompts/0/runs/2/step_agreement";
        H5Ldelete(file.get(), place.c_str(), H5P_DEFAULT);
        const std::vector<uint8_t> same(length, 1);
        trace::h5::write_data_set<uint8_t>(file.get(), place, same, std::vector<size_t>{length});
    }
    const trace::Reader reader(path);
    const std::string says =
        path.string() +
        ": /prompts/0/runs/2/step_agreement: expected one value for each of the 6 steps of step_kl, found " +
        std::to_string(length);
    const FigureDefinition& figure = figure_definition("step-kl");
    CHECK(why_not([&] { ranked(reader, "steps"); }) == says);
    CHECK(why_not([&] { figure.numbers(reader, {}); }) == says);
    CHECK(why_not([&] { figure.check(reader, {}); }) == says);
    CHECK_THROWS_AS(ranked(reader, "steps"), trace::DamagedTrace);
    CHECK(ranked(reader, "steps", {1}).table.rows.size() == 6);
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
        CHECK(has_runs == ((definition.shown_runs != nullptr)));
    }
    CHECK_THAT(why_not([] { return ranking_definition("best").name; }), Catch::Contains("sentences"));
    FigureOptions options;
    options.own["threshold"] = "1";
    CHECK_THAT(why_not([&] { check_options(ranking_definition("heads"), options); }),
               Catch::Contains("--threshold") && Catch::Contains("--layer"));
    options.own["threshold"] = "-1";
    CHECK_THAT(why_not([&] { check_options(ranking_definition("answers"), options); }), Catch::Contains("0 to 100"));
}
