// Rankings of answers, tokens and steps.
#include <catch2/catch.hpp>
#include <set>

#include "tests/analysis/ranked_trace.h"
#include "trace/hdf5/hdf5.h"

using namespace kvscope;
using namespace kvscope::analysis;
using namespace kvscope::analysis::testing;

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
