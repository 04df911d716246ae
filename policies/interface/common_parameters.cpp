#include "policies/interface/common_parameters.h"

namespace kvscope::policies {

Parameter window_parameter(int64_t fallback) {
    return integer_parameter("window", fallback, {.low = 1},
                             "Last prompt tokens whose queries rank the prefix and whose own entries are always kept "
                             "(SnapKV's observation window).");
}

Parameter pooling_parameter(std::string fallback) {
    return choice_parameter("pooling", {"max", "avg", "none"}, std::move(fallback),
                            "Pooling of the scores along the prefix, so that neighbours of a high score stay with it.");
}

Parameter kernel_parameter() {
    return integer_parameter("kernel", 7, {.low = 1, .odd = true}, "Width of the pooling in tokens.");
}

Parameter reduce_parameter() {
    return choice_parameter("reduce", {"mean", "max", "sum"}, "mean",
                            "How the scores of the query heads that read one KV head become one.");
}

Parameter granularity_parameter() {
    return choice_parameter("granularity", {"kv_head", "query_head"}, "kv_head",
                            "Whether each KV head keeps its own entries, or each query head, with K and V repeated "
                            "(older reference code; r times the memory).");
}

Parameter positions_parameter() {
    return acting_after_scores(
        choice_parameter("positions", {"prompt", "cache"}, "prompt",
                         "Kept keys keep the positions they were computed at, or are re-rotated to consecutive "
                         "places in the cache."));
}

Parameter lambda_parameter(double fallback) {
    return real_parameter("lambda", fallback, {.low = 0.0, .high = 0.5},
                          "Query diversification of ApertureKV, Q + lambda R (its Eq. 9-11); 0 is off.");
}

Parameter alpha_parameter(double fallback) {
    return acting_after_scores(
        real_parameter("alpha", fallback, {.low = 0.0, .high = 1.0},
                       "Share of each head's slots that is dealt out alike, whatever the scores (Ada-KV's "
                       "safeguard): n (1 - alpha) + alpha c."));
}

Parameter beta_parameter() {
    return acting_after_scores(
        real_parameter("beta", 20.0, {.low = 1.0},
                       "Steepness of the pyramid: the last layer keeps c / beta of the prefix, the first 2c minus "
                       "that (PyramidKV)."));
}

Parameter schedule_parameter() {
    return acting_after_scores(
        choice_parameter("schedule", {"exact", "reference"}, "exact",
                         "Layer budgets as integer shares of the exact total, or with the step between layers "
                         "floored, as the reference code does, which overspends."));
}

Parameter rolling_parameter() {
    return acting_after_scores(boolean_parameter(
        "rolling", false, "Also evict while decoding, so that the cache never holds more than the budget."));
}

kernels::Pooling pooling_of(const ParameterValues& values) {
    const std::string& name = values.text("pooling");
    if (name == "max") return kernels::Pooling::max;
    return name == "avg" ? kernels::Pooling::avg : kernels::Pooling::none;
}

kernels::HeadReduction reduction_of(const ParameterValues& values) {
    const std::string& name = values.text("reduce");
    if (name == "max") return kernels::HeadReduction::max;
    return name == "sum" ? kernels::HeadReduction::sum : kernels::HeadReduction::mean;
}

Granularity granularity_of(const ParameterValues& values) {
    return values.text("granularity") == "query_head" ? Granularity::query_head : Granularity::kv_head;
}

Positions positions_of(const ParameterValues& values) {
    return values.text("positions") == "cache" ? Positions::cache : Positions::prompt;
}

}  // namespace kvscope::policies
