// Checks a trace against schema.h: is everything there, of the right type and shape, and plausible.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kvscope::trace {

struct Problem {
    enum class Severity {
        error,   // breaks the format: other programs may misread the trace
        warning  // allowed, but probably not meant, or not recorded
    };
    Severity severity = Severity::error;
    std::string path;      ///< HDF5 path, e.g. /prompts/0/runs/3/kept_indices
    std::string expected;  ///< in words
    std::string found;     ///< in words
};

/// All problems, in the order of the file. A file that cannot be opened as a trace at all throws as
/// Reader does; an incomplete trace is checked as far as it goes, with a warning.
std::vector<Problem> check(const std::filesystem::path& path);

}  // namespace kvscope::trace
