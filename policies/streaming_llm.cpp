#include <algorithm>
#include <string>

#include "common/counted.h"
#include "policies/api/common_parameters.h"
#include "policies/api/definition.h"
#include "policies/methods/decode_step_entries.h"

namespace kvscope::policies {

namespace {

class StreamingLlm : public Policy, public Gathers {
 public:
    explicit StreamingLlm(const ParameterValues& values)
        : sinks_(values.integer("sinks")), rolling_(values.boolean("rolling")), positions_(key_positions_of(values)) {}

    void begin(const RunContext& context) override {
        if (context.budget <= sinks_ && (context.budget < context.n_tokens || rolling_)) {
            throw BudgetError("a budget of " + counted(context.budget, "entry") + " is not above the " +
                              std::to_string(sinks_) +
                              " sinks, which are always kept. Give a larger budget or fewer sinks.");
        }
        context_ = context;
    }

    void gather(LayerObservations&) override {}
    Selection select(LayerObservations& observations) override { return select_from_scores(observations.layer, {}); }

    Selection select_from_scores(int, LayerScores) override {
        const int64_t n = context_.n_tokens;
        const int64_t recent_from = std::max(std::min(sinks_, n), n - (context_.budget - sinks_));
        std::vector<uint32_t> kept;
        for (int64_t i = 0; i < n; ++i) {
            if (i < sinks_ || i >= recent_from) kept.push_back(static_cast<uint32_t>(i));
        }
        Selection selection;
        selection.rows.assign(static_cast<size_t>(context_.shape.n_kv_heads), kept);
        return selection;
    }

    Positions positions() const override { return positions_; }

 protected:
    int64_t sinks_;
    bool rolling_;
    Positions positions_;
    RunContext context_;
};

class RollingStreamingLlm : public StreamingLlm, public EvictsWhileDecoding {
 public:
    using StreamingLlm::StreamingLlm;

    StepEvictions step(const StepObservations& observations) override {
        StepEvictions evictions(observations.rows.size());
        for (size_t row = 0; row < evictions.size(); ++row) {
            const DecodeStepEntries entries(context_, observations, observations.rows[row].positions);
            int64_t excess = entries.n_counted() - context_.budget;
            for (uint32_t i = 0; excess > 0 && i < entries.size(); ++i) {
                if (entries.is_question(i) || entries.position(i) < sinks_) continue;
                evictions[row].push_back(i);
                --excess;
            }
        }
        return evictions;
    }
};

}  // namespace

Definition streaming_llm_definition() {
    return {
        .name = "streaming-llm",
        .title = "StreamingLLM",
        .paper = "Xiao et al., Efficient Streaming Language Models with Attention Sinks, ICLR 2024, arXiv:2309.17453",
        .summary =
            "Keeps the first entries (attention sinks) and the most recent ones. The choice depends on positions "
            "alone, so there are no scores.",
        .parameters =
            {
                mark_as_after_scoring(integer_parameter(
                    "sinks", 4, {.low = 0}, "Number of first entries that are always kept (attention sinks).")),
                rolling_parameter(),
                key_positions_parameter(),
            },
        .create =
            [](const ParameterValues& values) {
                return values.boolean("rolling") ? make_policy<RollingStreamingLlm>(values)
                                                 : make_policy<StreamingLlm>(values);
            },
    };
}

}  // namespace kvscope::policies
