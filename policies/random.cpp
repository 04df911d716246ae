#include "policies/interface/row_scores.h"
#include "policies/interface/scoring_policy.h"

namespace kvscope::policies {

namespace {

/// The finaliser of SplitMix64: every bit of the result depends on every bit of the number.
uint64_t mixed(uint64_t number) {
    number += 0x9e3779b97f4a7c15u;
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
    return number ^ (number >> 31);
}

/// What a choice that knows nothing comes to. Each draw is a function of seed, prompt, layer, row and position, so that
/// layers may be decided in any order and a run gives the same entries again.
class Random : public ScoringPolicy {
 public:
    explicit Random(const ParameterValues& values) : ScoringPolicy(values), shared_(values.boolean("shared")) {}

    Needs needs() const override { return {}; }

    void begin(const RunContext& context) override {
        ScoringPolicy::begin(context);
        state_ = mixed(context.seed);
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
                // The upper 24 bits: all that a float in [0, 1) holds evenly.
                scores.push_back(static_cast<float>(mixed(of_row ^ static_cast<uint64_t>(position)) >> 40) * 0x1p-24f);
            }
        }
        return scores;
    }

 private:
    bool shared_;
    uint64_t state_ = 0;
};

}  // namespace

Definition random_definition() {
    return {
        .name = "random",
        .title = "Random",
        .paper = "",
        .summary =
            "Keeps entries drawn uniformly, anew for each head, layer and prompt, and the same ones for the same seed; "
            "a policy that does no better has chosen nothing.",
        .parameters =
            {
                acting_after_scores(integer_parameter("recent", 0, {.low = 0}, "Last entries that are always kept.")),
                boolean_parameter("shared", false,
                                  "One draw for all heads of all layers: the floor of policies that choose tokens."),
                granularity_parameter(),
                positions_parameter(),
            },
        .create = [](const ParameterValues& values) -> std::unique_ptr<Policy> {
            return std::make_unique<Random>(values);
        },
    };
}

}  // namespace kvscope::policies
