#include <catch2/catch.hpp>
#include <cmath>

#include "policies/registry/registry.h"

using namespace kvscope::policies;
using Catch::Matchers::Contains;

namespace {

Selection select(const std::vector<float>& probabilities, int64_t budget) {
    RunContext context;
    context.shape = {2, 4, 2, 8};
    context.n_tokens = static_cast<int64_t>(probabilities.size());
    context.budget = budget;
    const auto policy = parse_policy("llmlingua-2:model=folder").create();
    policy->begin(context);
    LayerObservations observations;
    observations.shape = context.shape;
    observations.n_tokens = context.n_tokens;
    observations.token_probabilities = probabilities;
    return policy->select(observations);
}

TokenClassifierSettings asked(const std::string& parameters) {
    const auto policy = parse_policy("llmlingua-2:model=folder" + parameters).create();
    return std::get<TokenClassifierSettings>(policy.as<FiltersPrompt>()->filter({}));
}

}  // namespace

TEST_CASE("llmlingua-2 keeps all tokens outside the user's text, and the most probable others", "[llmlingua-2]") {
    const std::vector<float> probabilities{NAN, 0.2f, 0.7f, 0.2f, 0.0f, 0.7f, 0.2f, NAN};
    const auto rows = [](const std::vector<uint32_t>& row) { return std::vector<std::vector<uint32_t>>(2, row); };
    CHECK(select(probabilities, 3).rows == rows({0, 2, 7}));
    CHECK(select(probabilities, 4).rows == rows({0, 2, 5, 7}));
    CHECK(select(probabilities, 6).rows == rows({0, 1, 2, 3, 5, 7}));
    CHECK(select(probabilities, 8).rows == rows({0, 1, 2, 3, 4, 5, 6, 7}));
    CHECK(select(probabilities, 100).rows == select(probabilities, 8).rows);
    CHECK_THROWS_WITH(select(probabilities, 2),
                      Contains("budget of 2") && Contains("the 2 tokens of the chat template"));
    const auto scores = select(probabilities, 4).scores;
    REQUIRE(scores.size() == 16);
    CHECK((scores[2] == 0.7f && scores[10] == 0.7f && std::isnan(scores[8])));
}

TEST_CASE("llmlingua-2 passes its parameters to the classifier", "[llmlingua-2]") {
    CHECK(asked("") == TokenClassifierSettings{"folder", false, false, {}});
    CHECK(asked(",token_to_word=first,force_reserve_digit,force_tokens=\\n . \\c key\\sof \\\\") ==
          TokenClassifierSettings{"folder", true, true, {"\n", ".", ",", "key of", "\\"}});
    CHECK_THROWS_WITH(asked(",force_tokens=\\x"), Contains("force_tokens") && Contains("\\x"));
    CHECK_THROWS_WITH(parse_policy("llmlingua-2").create().as<FiltersPrompt>()->filter({}),
                      Contains("llmlingua-2:model=FOLDER") &&
                          Contains("microsoft/llmlingua-2-bert-base-multilingual-cased-meetingbank"));
}
