// Options of `export` that only some figures or rankings have.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kvscope::cli {

/// An option that only some figures or rankings have.
struct OwnOption {
    /// By help, in the order of the figures: names of the figures and rankings that have it.
    std::vector<std::pair<std::string, std::vector<std::string>>> meanings;
    std::size_t n_figures = 0, n_rankings = 0;

    /// Returns "For results-bars, results-table: unit of scores; for answers: …".
    [[nodiscard]] std::string help() const;
};

/// Returns the options of all figures and rankings, by name.
[[nodiscard]] std::map<std::string, OwnOption> own_options();

/// Returns all values of the option that at least one figure or ranking accepts.
[[nodiscard]] std::vector<std::string> choices_in_figures(const std::string& option);

}  // namespace kvscope::cli
