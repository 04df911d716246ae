#pragma once

#include <string_view>

#include "trace/records/records.h"

namespace kvscope::results {

/// A measure of kvscope's runs, which is a metric in the files of lm-eval.
struct Measure {
    std::string_view name;
    double trace::ResultRow::*member;
    bool higher_is_better;
};

inline constexpr Measure measures[] = {
    {"budget_fraction", &trace::ResultRow::budget_fraction, false},
    {"kept_share", &trace::ResultRow::kept_share, false},
    {"kl", &trace::ResultRow::kl, false},
    {"agreement", &trace::ResultRow::agreement, true},
    {"coverage", &trace::ResultRow::coverage, true},
    {"attention_kept", &trace::ResultRow::attention_kept, true},
    {"output_error", &trace::ResultRow::output_error, false},
    {"recall", &trace::ResultRow::recall, true},
    {"bytes", &trace::ResultRow::bytes, false},
};

}  // namespace kvscope::results
