#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/experiment.h"

namespace kvscope::cli {

/// One context with the questions asked of it; none: the text alone is the prompt.
struct PromptText {
    std::string name;
    std::string context;
    std::vector<std::string> questions;
};

/// Everything `kvscope run` can be told.
struct RunJob {
    std::filesystem::path model;  ///< empty: the default model
    std::vector<PromptText> prompts;
    std::string prompt_from;  ///< "trace.h5" or "trace.h5:2": a trace's prompt in place of `prompts`
    bool query_aware = true;
    bool use_template = true;
    std::vector<std::string> policies;  ///< as --policy takes them
    std::vector<std::string> budgets;   ///< as --budget takes them
    engine::ExperimentOptions experiment;
    std::string dtype = "auto";
    std::string device = "cpu";
    int threads = 0;       ///< 0: as many as there are cores
    bool analyze = false;  ///< spectra of the projections into /model
    std::filesystem::path output;
    std::filesystem::path timings;  ///< JSON file with the seconds of each phase; empty: none
    bool force = false;
    bool quiet = false;
};

/// Runs the job and writes its trace. A trace of the same recipe that is complete already is left as it is.
/// @returns 0, or 1 where a run failed
/// @throws std::invalid_argument for wrong usage, other exceptions for failures
int run(const RunJob& job);

}  // namespace kvscope::cli
