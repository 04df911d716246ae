#include <fmt/format.h>

#include <string>

#include "policies/bases/score_operations.h"
#include "policies/bases/scoring_policy.h"
#include "policies/methods/seeded_random.h"

namespace kvscope::policies {

namespace {

class DapQ : public ScoringPolicy, public AppendsTokens {
 public:
    explicit DapQ(const ParameterValues& values)
        : ScoringPolicy(values),
          n_pseudo_(values.integer("pseudo_tokens")),
          content_(values.text("content")),
          first_(values.integer("first")),
          last_(values.automatic_integer("last").value_or(n_pseudo_ - first_)),
          phrase_(values.text("phrase")),
          offset_(values.integer("offset")),
          reduction_(reduction_of(values)) {
        if (content_ == "first-last" && (last_ < 0 || first_ + last_ != n_pseudo_))
            throw ParameterError("dapq: first=" + std::to_string(first_) + " and last=" + std::to_string(last_) +
                                 " do not add up to " + std::to_string(n_pseudo_) +
                                 " pseudo_tokens. Leave `last` at auto, or let both add up to pseudo_tokens.");
    }

    AppendedTokens appended(const RunContext& context) const override {
        const int64_t start = context.n_tokens + offset_;
        if (start < 0)
            throw BudgetError("offset=" + std::to_string(offset_) + " puts the pseudo tokens before the prompt of " +
                              std::to_string(context.n_tokens) + " tokens. Give at least " +
                              std::to_string(-context.n_tokens));
        AppendedTokens appended{pseudo_ids(context), {}};
        for (int64_t i = 0; i < n_pseudo_; ++i) appended.positions.push_back(start + i);
        return appended;
    }

 protected:
    std::vector<float> score(LayerObservations& observations) override {
        return reduce_scores_by_head<float>(context().shape, granularity(), reduction_,
                                            observations.appended_attention(), context().n_tokens,
                                            static_cast<float>(observations.n_appended()));
    }

    std::string shared_as() const override {
        return fmt::format("dapq {} {}", static_cast<int>(reduction_), static_cast<int>(granularity()));
    }

 private:
    std::vector<int32_t> pseudo_ids(const RunContext& context) const {
        SeededRandom random(context.seed);
        std::vector<int32_t> ids;
        if (content_ == "fixed-phrase") {
            // Repeats the phrase as running text (Table 1). A trailing space becomes part of the next word's token.
            std::string text;
            const char* between = phrase_.empty() || phrase_.back() == ' ' ? "" : " ";
            for (int64_t i = 0; i < n_pseudo_; ++i) text += phrase_ + between;
            const std::vector<int32_t> phrase = context.tokenize(text);
            if (phrase.empty()) throw ParameterError("dapq: the phrase is empty. Give some text.");
            for (int64_t i = 0; i < n_pseudo_; ++i) ids.push_back(phrase[static_cast<size_t>(i) % phrase.size()]);
            return ids;
        }
        if (content_ == "vocabulary") {
            for (int64_t i = 0; i < n_pseudo_; ++i)
                ids.push_back(static_cast<int32_t>(random.below(context.n_vocabulary)));
            return ids;
        }
        const int64_t n = context.n_tokens;
        const auto token = [&](int64_t position) {
            return context.token_ids[static_cast<size_t>(((position % n) + n) % n)];
        };
        if (content_ == "random-tokens") {
            for (int64_t i = 0; i < n_pseudo_; ++i) ids.push_back(token(random.below(n)));
        } else if (content_ == "random-span") {
            const int64_t start = n > n_pseudo_ ? random.below(n - n_pseudo_ + 1) : 0;
            for (int64_t i = 0; i < n_pseudo_; ++i) ids.push_back(token(start + i));
        } else {
            for (int64_t i = 0; i < first_; ++i) ids.push_back(token(i));
            for (int64_t i = 0; i < last_; ++i) ids.push_back(token(n - last_ + i));
        }
        return ids;
    }

    int64_t n_pseudo_;
    std::string content_;
    int64_t first_;
    int64_t last_;
    std::string phrase_;
    int64_t offset_;
    kernels::HeadReduction reduction_;
};

}  // namespace

Definition dapq_definition() {
    return {
        .name = "dapq",
        .title = "DapQ",
        .paper =
            "Where Matters More Than What: Decoding-aligned KV Cache Compression via Position-Aware Pseudo-Queries, "
            "anonymous, under review",
        .summary =
            "Appends pseudo tokens to the prompt at the positions of the future answer and keeps the entries to which "
            "the pseudo tokens attend most. The entries of the pseudo tokens are dropped. The last prompt entries are "
            "not protected.",
        .parameters =
            {
                integer_parameter("pseudo_tokens", 32, {.low = 1, .high = 1 << 20},
                                  "Number M of pseudo tokens (Fig. 6b)."),
                choice_parameter("content",
                                 {"first-last", "random-tokens", "random-span", "fixed-phrase", "vocabulary"},
                                 "first-last",
                                 "Content of the pseudo tokens (Fig. 2a and 6a): the prompt's first and last tokens, "
                                 "random tokens of the prompt, a random span of the prompt, a repeated phrase, or "
                                 "random tokens of the vocabulary. A prompt that is too short is repeated."),
                integer_parameter("first", 4, {.low = 0, .high = 1 << 20},
                                  "Number of tokens from the start of the prompt, for content=first-last."),
                automatic_integer_parameter("last", "pseudo_tokens minus first", {.low = 0, .high = 1 << 20},
                                            "Number of tokens from the end of the prompt, for content=first-last."),
                text_parameter(
                    "phrase", "Sorry, I don't know. ",
                    "Phrase for content=fixed-phrase (Table 1). Repetitions of the phrase are separated by spaces."),
                integer_parameter("offset", 0, {},
                                  "Position of the first pseudo token, counted from the end of the prompt (Fig. 2b). "
                                  "With offset 0, the pseudo tokens start where the answer starts."),
                reduce_parameter(),
                granularity_parameter(),
                key_positions_parameter(),
            },
        .create = make_policy<DapQ>,
    };
}

}  // namespace kvscope::policies
