#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace/reader.h"

namespace kvscope::analysis {

/// How a run of a trace is made again.
struct Reproduction {
    std::string command;  ///< one for a POSIX shell
    std::vector<std::string>
        remarks;  ///< what the command does not repeat and why, or what has to be there; a line each
};

/// The command that makes a run's kept sets again from the trace's own token ids: model, prompt, policy with what
/// differs from its defaults, budget, number type, mode, seeds and, where the policy goes by answers, all questions of
/// the context. A run that with_run() added is described as well; of a failed one the command tries it again.
/// @param model path to the model; empty: the command leaves it to the program's default model (the program refuses a
///              model of another fingerprint)
/// @throws FigureError when the trace has no such prompt, NothingToShow when this build does not know the policy or its
///         parameters, and what the reader throws.
Reproduction reproduction(const trace::Reader& reader, int prompt, int run, std::string_view model = {},
                          std::string_view output = "again.h5");

/// Its command alone.
std::string reproduce_command(const trace::Reader& reader, int prompt, int run, std::string_view model = {},
                              std::string_view output = "again.h5");

/// "report-again-0-3.h5" for run 3 of prompt 0 of "report.h5": another name for each run of a trace.
std::string reproduction_name(const trace::Reader& reader, int prompt, int run);

}  // namespace kvscope::analysis
