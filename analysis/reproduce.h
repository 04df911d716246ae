#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace/reader.h"

namespace kvscope::analysis {

/// How to repeat a run of a trace.
struct Reproduction {
    std::string command;  ///< for a POSIX shell
    std::vector<std::string>
        remarks;  ///< one line per required file, and per setting that the command does not repeat, with the reason
};

/// Returns the command that repeats a run's selection from the trace's token ids, with all settings of the run.
/// @param model path to the model; empty: the default model
/// @throws FigureError if the trace has no such prompt, NothingToShow if this build does not know the policy
[[nodiscard]] Reproduction reproduction_of_run(const trace::Reader& reader, int prompt, int run,
                                               std::string_view model = {}, std::string_view output = "again.h5");

/// Returns a command for each sample of a task, which repeats all runs of the sample as a trace of its own. Without
/// samples, returns a remark that says why there is no command.
[[nodiscard]] std::vector<Reproduction> reproductions_of_samples(const trace::Reader& reader,
                                                                 std::string_view model = {});

[[nodiscard]] std::string command_to_reproduce_run(const trace::Reader& reader, int prompt, int run,
                                                   std::string_view model = {}, std::string_view output = "again.h5");

/// Returns a file name for the repeated run: "report-again-0-3.h5" for run 3 of prompt 0 of "report.h5".
[[nodiscard]] std::string file_name_of_repeated_run(const trace::Reader& reader, int prompt, int run);

}  // namespace kvscope::analysis
