#pragma once

#include <string>
#include <string_view>

#include "trace/reader.h"

namespace kvscope::analysis {

/// One word of a POSIX shell's command line: as it is where nothing in it means anything to the shell, else in single
/// quotes.
std::string shell_quoted(std::string_view word);

/// The command that makes a run's kept sets again from the trace's own token ids: model, prompt, policy with what
/// differs from its defaults, budget, number type, mode and seed. A run that with_run() added is described as well.
/// @param model path to the model; empty: the command leaves it to the program's default model (the program refuses a
///              model of another fingerprint)
/// @throws FigureError when the trace has no such prompt, NothingToShow when this build does not know the policy or its
///         parameters, and what the reader throws.
std::string reproduce_command(const trace::Reader& reader, int prompt, int run, std::string_view model = {},
                              std::string_view output = "again.h5");

}  // namespace kvscope::analysis
