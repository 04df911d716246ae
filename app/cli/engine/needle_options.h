#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kvscope::cli {

/// References to the settings of a command with needle prompts.
struct NeedleVariables {
    std::vector<int64_t>& lengths;
    std::vector<double>& depths;
    int& n_samples;
    int64_t& n_new;
    std::filesystem::path& haystack;
};

/// Declares --lengths, --depths, --samples, -n and --haystack.
void declare_needles(CLI::App& app, NeedleVariables variables);

/// Returns the text of --haystack, or an empty text without that option.
/// @throws engine::UsageError if the text is not UTF-8 or blank, and what program::read_text throws
std::string haystack_text(const std::filesystem::path& file);

}  // namespace kvscope::cli
