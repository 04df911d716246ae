#include "policies/bases/score_operations.h"
#include "policies/bases/scoring_policy.h"

namespace kvscope::policies {

namespace {

/// SplitMix64's finalizer, in which every bit of the result depends on every bit of the input.
uint64_t mixed(uint64_t number) {
    number += 0x9e3779b97f4a7c15u;
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
    return number ^ (number >> 31);
}

/// A score depends on seed, prompt, layer, row and position alone, so that the order of layers does not matter.
class Random : public ScoringPolicy {
 public:
    explicit Random(const ParameterValues& values)
        : ScoringPolicy(values),
          seed_(static_cast<uint64_t>(values.integer("seed"))),
          shared_(values.boolean("shared")) {}

    void begin(const RunContext& context) override {
        ScoringPolicy::begin(context);
        state_ = mixed(context.seed + seed_);
        for (int32_t token : context.token_ids) state_ = mixed(state_ ^ static_cast<uint32_t>(token));
    }

 protected:
    std::vector<float> score(LayerObservations& observations) override {
        const int rows = n_rows(context().shape, granularity());
        std::vector<float> scores;
        for (int row = 0; row < rows; ++row) {
            const uint64_t of_row =
                shared_
                    ? state_
                    : mixed(mixed(state_ ^ static_cast<uint64_t>(observations.layer + 1)) ^ static_cast<uint64_t>(row));
            for (int64_t position = 0; position < context().n_tokens; ++position) {
                // Uses 24 bits, which a float in [0, 1) represents exactly.
                scores.push_back(static_cast<float>(mixed(of_row ^ static_cast<uint64_t>(position)) >> 40) * 0x1p-24f);
            }
        }
        return scores;
    }

 private:
    uint64_t seed_;
    bool shared_;
    uint64_t state_ = 0;
};

}  // namespace

Definition random_definition() {
    return {
        .name = "random",
        .title = "Random",
        .summary =
            "Keeps uniformly random entries, drawn separately for each head, layer and prompt. The same seed gives the "
            "same entries. A useful policy performs better than random selection.",
        .parameters =
            {
                mark_as_after_scoring(
                    integer_parameter("recent", 0, {.low = 0}, "Number of last entries that are always kept.")),
                boolean_parameter("shared", false,
                                  "Whether all heads of all layers keep the same random tokens, for comparison with "
                                  "policies that select whole tokens."),
                integer_parameter(
                    "seed", 0, {.low = 0},
                    "Number that is added to the seed of the run (option --seed). A range compares several "
                    "draws in one trace."),
                granularity_parameter(),
                key_positions_parameter(),
            },
        .create = make_policy<Random>,
    };
}

}  // namespace kvscope::policies
