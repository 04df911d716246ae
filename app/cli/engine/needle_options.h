#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kvscope::cli {

/// Variables of what commands with needle prompts ask for alike.
struct NeedleVariables {
    std::vector<int64_t>& lengths;
    std::vector<double>& depths;
    int& n_samples;
    int64_t& n_new;
    std::filesystem::path& haystack;
};

/// Declares --lengths, --depths, --samples, -n and --haystack.
void declare_needles(CLI::App& app, NeedleVariables variables);

/// The text of --haystack; empty without it.
/// @throws engine::UsageError where it is not UTF-8, and what program::read_text throws
std::string haystack_text(const std::filesystem::path& file);

}  // namespace kvscope::cli
