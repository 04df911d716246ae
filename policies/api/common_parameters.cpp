#include "policies/api/common_parameters.h"

namespace kvscope::policies {

Parameter window_parameter(int64_t fallback) {
    return integer_parameter("window", fallback, {.low = 1},
                             "Number of last prompt tokens whose queries rank the prefix (SnapKV's observation "
                             "window). The entries of these tokens are always kept.");
}

Parameter pooling_parameter(std::string fallback) {
    return choice_parameter("pooling", {"max", "avg", "none"}, std::move(fallback),
                            "Pooling of the scores along the prefix: maximum, average or none. Pooling also raises the "
                            "scores next to a high score.");
}

Parameter kernel_parameter() {
    return integer_parameter("kernel", 7, {.low = 1, .odd = true}, "Width of the pooling, in tokens.");
}

Parameter reduce_parameter() {
    return choice_parameter("reduce", {"mean", "max", "sum"}, "mean",
                            "How the scores of the query heads that share a KV head become one score.");
}

Parameter granularity_parameter() {
    return choice_parameter(
        "granularity", {"kv_head", "query_head"}, "kv_head",
        "Heads that keep their own entries. With query_head (as in older reference code), each query head has its own "
        "copies of keys and values. With r query heads per KV head, query_head takes r times the memory.");
}

Parameter key_positions_parameter() {
    return mark_as_after_scoring(
        choice_parameter("positions", {"prompt", "cache"}, "prompt",
                         "Positions of kept keys. With prompt, keys keep their positions. With "
                         "cache, keys are rotated again to consecutive positions."));
}

Parameter lambda_parameter(double fallback) {
    return real_parameter("lambda", fallback, {.low = 0.0, .high = 0.5},
                          "Strength of the query diversification Q + lambda R (Eq. 9-11 of ApertureKV's paper). With "
                          "0, queries stay unchanged.");
}

Parameter alpha_parameter(double fallback) {
    return mark_as_after_scoring(real_parameter(
        "alpha", fallback, {.low = 0.0, .high = 1.0},
        "Share of the budget that the heads get equally (Ada-KV's safeguard). A head keeps n (1 - alpha) + alpha c "
        "entries, where n is the number that scores alone would give the head, and c is the mean over the heads."));
}

Parameter beta_parameter() {
    return mark_as_after_scoring(
        real_parameter("beta", 20.0, {.low = 1.0},
                       "Steepness of PyramidKV's pyramid. If layers keep c prefix entries on average, the last layer "
                       "keeps c / beta entries and the first layer 2c - c / beta."));
}

Parameter schedule_parameter() {
    return mark_as_after_scoring(choice_parameter(
        "schedule", {"exact", "reference"}, "exact",
        "Rounding of the layer budgets. With exact, the budgets add up to the total. With reference (as in the "
        "published code), the step between layers is rounded down, so that the sum exceeds the total."));
}

Parameter rolling_parameter() {
    return mark_as_after_scoring(boolean_parameter(
        "rolling", false,
        "Whether entries are also evicted during decoding, so that the cache never exceeds the budget."));
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

Positions key_positions_of(const ParameterValues& values) {
    return values.text("positions") == "cache" ? Positions::cache : Positions::prompt;
}

}  // namespace kvscope::policies
