#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "common/counted.h"
#include "policies/api/definition.h"
#include "policies/api/policy_errors.h"

namespace kvscope::policies {

namespace {

/// Splits a list at spaces. Escapes: \n line break, \t tab, \s space, \c comma, \\ backslash.
std::vector<std::string> texts_of(std::string_view list) {
    static constexpr std::string_view letters = "ntsc\\", characters = "\n\t ,\\";
    std::vector<std::string> texts(1);
    for (size_t i = 0; i < list.size(); ++i) {
        if (list[i] == ' ') {
            texts.emplace_back();
        } else if (list[i] != '\\') {
            texts.back() += list[i];
        } else {
            const size_t letter = ++i < list.size() ? letters.find(list[i]) : std::string_view::npos;
            if (letter == std::string_view::npos)
                throw ParameterError("force_tokens: expected \\n, \\t, \\s, \\c or \\\\ in '" + std::string(list) +
                                     "', found another character after a backslash");
            texts.back() += characters[letter];
        }
    }
    std::erase(texts, std::string());
    return texts;
}

class LlmLingua2 : public Policy, public FiltersPrompt {
 public:
    explicit LlmLingua2(const ParameterValues& values)
        : classification_{.model = values.text("model"),
                          .first_token = values.text("token_to_word") == "first",
                          .keep_digits = values.boolean("force_reserve_digit"),
                          .force_tokens = texts_of(values.text("force_tokens"))} {}

    PromptFilter filter(const RunContext&) const override {
        if (classification_.model.empty())
            throw ParameterError(
                "llmlingua-2 needs a token classifier. Download "
                "microsoft/llmlingua-2-bert-base-multilingual-cased-meetingbank (0.7 GB) or "
                "microsoft/llmlingua-2-xlm-roberta-large-meetingbank (2.2 GB) from Hugging Face into a folder and pass "
                "the folder: llmlingua-2:model=FOLDER");
        return classification_;
    }

    void begin(const RunContext& context) override { context_ = context; }

    Selection select(LayerObservations& observations) override {
        std::vector<float> scores;
        for (int g = 0; g < context_.shape.n_kv_heads; ++g)
            scores.insert(scores.end(), observations.token_probabilities.begin(),
                          observations.token_probabilities.end());
        return select_from_scores(observations.layer, {Granularity::kv_head, std::move(scores), {}});
    }

    /// Keeps all tokens that have no probability, and fills the budget with the tokens of highest probability.
    Selection select_from_scores(int layer, LayerScores scores) override {
        const auto n = static_cast<size_t>(context_.n_tokens);
        const auto rows = static_cast<size_t>(context_.shape.n_kv_heads);
        if (scores.scores.size() != rows * n)
            throw ScoreError("layer " + std::to_string(layer) + ": " + std::to_string(scores.scores.size()) +
                             " scores, expected " + std::to_string(rows * n));
        const std::vector<float> probabilities(scores.scores.begin(),
                                               scores.scores.begin() + static_cast<std::ptrdiff_t>(n));
        std::vector<uint32_t> order(n);
        std::iota(order.begin(), order.end(), 0u);
        const auto is_candidate = [&](uint32_t i) { return !std::isnan(probabilities[i]); };
        const auto candidates =
            std::partition(order.begin(), order.end(), [&](uint32_t i) { return !is_candidate(i); });
        const auto n_forced = static_cast<int64_t>(candidates - order.begin());
        if (context_.budget < context_.n_tokens && context_.budget <= n_forced)
            throw BudgetError(
                "a budget of " + counted(context_.budget, "token") + " is not above the " + std::to_string(n_forced) +
                " tokens of the chat template and the question, which are always kept. Give a larger budget.");
        std::sort(candidates, order.end(), [&](uint32_t a, uint32_t b) {
            return probabilities[a] != probabilities[b] ? probabilities[a] > probabilities[b] : a < b;
        });
        order.resize(static_cast<size_t>(std::min(context_.budget, context_.n_tokens)));
        std::sort(order.begin(), order.end());
        Selection selection;
        selection.rows.assign(rows, order);
        selection.scores = std::move(scores.scores);
        return selection;
    }

 private:
    TokenClassifierSettings classification_;
    RunContext context_;
};

}  // namespace

Definition llmlingua_2_definition() {
    return {
        .name = "llmlingua-2",
        .title = "LLMLingua-2",
        .paper =
            "Pan et al., LLMLingua-2: Data Distillation for Efficient and Faithful Task-Agnostic Prompt Compression, "
            "ACL 2024, arXiv:2403.12968",
        .summary =
            "A token classifier, supplied by the user, reads the context before the model does. The B tokens with the "
            "highest probabilities become the prompt, renumbered from 0. The chat template and the question are always "
            "kept.",
        .parameters =
            {
                text_parameter(
                    "model", "",
                    "Folder of the classifier, such as a download of "
                    "microsoft/llmlingua-2-bert-base-multilingual-cased-meetingbank. The folder is required."),
                choice_parameter("token_to_word", {"mean", "first"}, "mean",
                                 "Probability of a word. With mean, a word has the mean probability of its tokens. "
                                 "With first, a word has the probability of its first token."),
                text_parameter("force_tokens", "",
                               "Texts that get probability 1, separated by spaces. Write \\n for a line break, \\t for "
                               "a tab, \\s for a space and \\c for a comma."),
                boolean_parameter("force_reserve_digit", false, "Whether tokens with a digit get probability 1."),
            },
        .create = make_policy<LlmLingua2>,
        .needs_file = true,
    };
}

}  // namespace kvscope::policies
