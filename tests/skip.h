#pragma once

#include <catch2/catch.hpp>
#include <cstdio>

/// Leaves the current test case as skipped, with the reason; Catch2 v2 knows passed and failed alone, and
/// scripts/count_test_results.py counts these lines.
#define KVSCOPE_SKIP(reason)                                                                             \
    do {                                                                                                 \
        std::printf("SKIPPED %s: %s\n", Catch::getResultCapture().getCurrentTestName().c_str(), reason); \
        std::fflush(stdout);                                                                             \
        return;                                                                                          \
    } while (false)
