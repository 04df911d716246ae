#pragma once

#include "tests/analysis/policy_trace.h"

namespace kvscope::gui::testing {

/// Runs that the policies themselves decided, so that what-ifs repeat them: H2O and SnapKV beside the full cache.
inline analysis::test::PolicyTrace h2o_and_snapkv() {
    return analysis::test::PolicyTrace(
        {{"full", analysis::test::PolicyTrace::n_tokens}, {"h2o", 12}, {"snapkv:window=8", 20}});
}

}  // namespace kvscope::gui::testing
