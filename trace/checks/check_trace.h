// Checks a trace against schema.h: missing items, wrong types and shapes, implausible values.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kvscope::trace {

struct Problem {
    enum class Severity {
        error,   ///< breaks the format: other programs may misread the trace
        warning  ///< allowed, but probably unintended or not recorded
    };
    Severity severity = Severity::error;
    std::string path;      ///< HDF5 path, e.g. /prompts/0/runs/3/kept_indices
    std::string expected;  ///< what the format requires
    std::string found;     ///< what the trace contains
};

/// Returns all problems in file order; an incomplete trace gives a warning. Throws like Reader's constructor.
std::vector<Problem> find_problems(const std::filesystem::path& path);

}  // namespace kvscope::trace
