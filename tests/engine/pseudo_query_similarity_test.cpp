#include "engine/decode/pseudo_query_similarity.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "engine/common/engine_error.h"
#include "tests/engine/experiment_on_disk.h"

using namespace kvscope;
using namespace kvscope::engine::testing;
using Catch::Matchers::Contains;
using engine::PseudoQuerySimilarity;
using engine::PseudoTokens;
using engine::Tail;
using Content = engine::PseudoTokens::Content;

namespace {

constexpr int64_t n_aligned = 75;

engine::PseudoSource source_of(const PseudoQuerySimilarity& alignment) {
    return {alignment.answer(), {}, tiny_model().transformer().config().vocab_size, 1};
}

}  // namespace

// True queries come from decoding token by token, pseudo queries from one pass after the prompt.
TEST_CASE("pseudo tokens equal to the answer, at its positions, have the answer's queries") {
    engine::SilentProgress progress;
    PseudoQuerySimilarity alignment(tiny_model().transformer(), some_ids(tiny_model(), n_aligned), {}, 12, progress);
    const auto source = source_of(alignment);
    std::vector<Tail> tails;
    for (const PseudoTokens& tokens :
         {PseudoTokens{Content::answer, n_aligned}, PseudoTokens{Content::answer, n_aligned + 1},
          PseudoTokens{Content::vocabulary, n_aligned}, PseudoTokens{Content::answer, 0}})
        tails.push_back(engine::draw_pseudo_tokens(tokens, source, 1)[0]);
    const auto found = alignment.similarity(tails, progress);
    CHECK(found[0].after_rope == Approx(1).margin(1e-5));
    CHECK(found[0].before_rope == Approx(1).margin(1e-5));
    CHECK(found[1].after_rope < 0.999);
    CHECK(found[2].after_rope < 0.999);
    // At the same positions both queries are rotated by the same angle.
    CHECK(found[2].after_rope == Approx(found[2].before_rope).margin(1e-5));
    CHECK(std::abs(found[3].after_rope - found[3].before_rope) > 1e-3);

    SECTION("a tail's queries do not depend on other tails or repetition") {
        const auto many = engine::draw_pseudo_tokens({Content::vocabulary, n_aligned}, source, 70);
        const auto among = alignment.similarity(many, progress);
        const auto alone = alignment.similarity(std::span(many).last(1), progress);
        CHECK(among.back().after_rope == alone[0].after_rope);
        CHECK(alignment.similarity(tails, progress)[0].after_rope == found[0].after_rope);
    }
    SECTION("tails that do not fit are refused") {
        Tail tail = tails[0];
        tail.ids.pop_back();
        CHECK_THROWS_AS(alignment.similarity({&tail, 1}, progress), engine::UsageError);
        tail = tails[0];
        tail.positions[3] = -1;
        CHECK_THROWS_AS(alignment.similarity({&tail, 1}, progress), engine::UsageError);
    }
}

TEST_CASE("the answer ends before an end token; without an answer there is nothing to compare") {
    engine::SilentProgress progress;
    const auto& model = tiny_model().transformer();
    const auto ids = some_ids(tiny_model(), n_aligned);
    const auto answer = PseudoQuerySimilarity(model, ids, {}, 12, progress).answer();
    REQUIRE(answer.size() == 12);
    const int32_t end = answer[5];
    const auto first = std::find(answer.begin(), answer.end(), end);
    if (first != answer.begin()) {
        CHECK(PseudoQuerySimilarity(model, ids, {&end, 1}, 12, progress).answer() ==
              std::vector<int32_t>(answer.begin(), first));
    }
    CHECK_THROWS_WITH(PseudoQuerySimilarity(model, ids, {answer.data(), 1}, 12, progress),
                      Contains("answer to this prompt is empty"));
    CHECK_THROWS_AS(PseudoQuerySimilarity(model, ids, {}, 0, progress), engine::UsageError);
    CHECK_THROWS_AS(PseudoQuerySimilarity(model, ids, {}, 1 << 20, progress), engine::UsageError);
}

TEST_CASE("contents and positions of pseudo tokens") {
    const std::vector<int32_t> answer{5, 6, 7, 8}, phrase{1, 2, 3};
    const engine::PseudoSource source{answer, phrase, 50, 9};
    const auto same = engine::draw_pseudo_tokens({Content::answer, 30}, source, 1)[0];
    CHECK(same.ids == answer);
    CHECK(same.positions == std::vector<int64_t>{30, 31, 32, 33});
    CHECK(engine::draw_pseudo_tokens({Content::phrase, 0}, source, 1)[0].ids == std::vector<int32_t>{1, 2, 3, 1});
    const auto drawn = engine::draw_pseudo_tokens({.content = Content::vocabulary, .drawn_below = 6}, source, 200);
    std::vector<int> starts(3, 0);
    for (const Tail& tail : drawn) {
        ++starts.at(static_cast<size_t>(tail.positions[0]));
        CHECK(tail.positions.back() == tail.positions[0] + 3);
        CHECK(std::all_of(tail.ids.begin(), tail.ids.end(), [](int32_t id) { return id >= 0 && id < 50; }));
    }
    CHECK(*std::min_element(starts.begin(), starts.end()) > 40);
    CHECK(drawn[0].ids != drawn[1].ids);
    CHECK(engine::draw_pseudo_tokens({.content = Content::vocabulary, .drawn_below = 6}, source, 2)[1].ids ==
          drawn[1].ids);
    CHECK(engine::draw_pseudo_tokens({.drawn_below = 2}, source, 1)[0].positions[0] == 0);
    CHECK_THROWS_AS(engine::draw_pseudo_tokens({Content::phrase, 0}, {answer, {}, 50, 9}, 1), engine::UsageError);
}

// Reference: transformers in f64 (scripts/golden/query_alignment.py).
TEST_CASE("the default model's query similarities equal the reference's", "[default_model]") {
    engine::SilentProgress progress;
    const auto golden_file = golden("engine/query_alignment.json");
    const auto ids = golden("engine/prompt_ids.json")["prompts"]["short"]["ids"].get<std::vector<int32_t>>();
    const auto answer = golden_file["answer"].get<std::vector<int32_t>>();
    const auto& model = default_model_f32();
    PseudoQuerySimilarity alignment(model.transformer(), ids, model.end_ids(), static_cast<int64_t>(answer.size()),
                                    progress);
    REQUIRE(alignment.answer() == answer);
    std::vector<Tail> tails;
    for (const auto& one : golden_file["cases"])
        tails.push_back({one["ids"].get<std::vector<int32_t>>(), one["positions"].get<std::vector<int64_t>>()});
    const auto found = alignment.similarity(tails, progress);
    for (size_t i = 0; i < tails.size(); ++i) {
        CAPTURE(i);
        CHECK(found[i].after_rope == Approx(golden_file["cases"][i]["after_rope"].get<double>()).margin(1e-5));
        CHECK(found[i].before_rope == Approx(golden_file["cases"][i]["before_rope"].get<double>()).margin(1e-5));
    }
}
