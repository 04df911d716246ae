#pragma once

#include "tests/analysis/policy_trace.h"

namespace kvscope::gui::testing {

/// Trace of H2O, SnapKV and full, with runs decided by the policies, so that what-ifs can repeat them.
[[nodiscard]] inline analysis::test::PolicyTrace h2o_and_snapkv() {
    return analysis::test::PolicyTrace(
        {{"full", analysis::test::PolicyTrace::n_tokens}, {"h2o", 12}, {"snapkv:window=8", 20}});
}

}  // namespace kvscope::gui::testing
