#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kvscope::cli {

struct NeedleVariables {
    std::vector<int64_t>& lengths;
    std::vector<double>& depths;
    int& n_samples;
    int64_t& n_new;
    std::filesystem::path& haystack;
};

void declare_needles(CLI::App& app, NeedleVariables variables);

/// Returns the text of `file`, or "" for an empty path. @throws std::invalid_argument if the text is blank or not UTF-8
[[nodiscard]] std::string haystack_text(const std::filesystem::path& file);

}  // namespace kvscope::cli
