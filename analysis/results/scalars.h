#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/results/result.h"
#include "analysis/tables/table.h"

namespace kvscope::analysis {

/// A number of each complete run that is averaged over samples. Times and memory have medians instead of means.
struct Scalar {
    std::string_view name;   ///< as the column of `/results`, for options and CSV
    std::string_view title;  ///< for people
    std::string_view unit;   ///< empty if there is none
    int decimals = 3;
    Best best = Best::none;
    enum class Kind {
        amount,    ///< such as bytes
        distance,  ///< from the full run, for which it is 0
        share,     ///< fraction of 1; the full run has 0 or 1
        score,     ///< from 0 to 1 (estimate_score())
        cost       ///< time or memory, which estimate_median() summarizes
    };
    Kind kind = Kind::amount;
    double (*value)(const Result&) = nullptr;  ///< NaN if unknown

    [[nodiscard]] bool is_score() const { return kind == Kind::score; }
    [[nodiscard]] bool is_cost() const { return kind == Kind::cost; }
    [[nodiscard]] bool is_fraction() const { return kind == Kind::share || is_score(); }
    /// Whether all full runs have the same value by definition, 0 or 1, as of KL and coverage.
    [[nodiscard]] bool is_trivial_of_full() const { return kind == Kind::share || kind == Kind::distance; }
};

[[nodiscard]] std::vector<std::string> scalar_names();

[[nodiscard]] std::vector<Scalar> cost_scalars();

/// Finds a scalar by name; '_' equals '-'. Returns nullptr if there is none.
[[nodiscard]] const Scalar* find_scalar(std::string_view name);

/// @throws FigureError with the names of all scalars if none has this name
[[nodiscard]] const Scalar& scalar_named(std::string_view name);

/// Whether a complete run has a finite value.
[[nodiscard]] bool is_known(const Scalar& scalar, std::span<const Result> results);
/// @throws NothingToShow with the reason if the scalar is not known
void require_known(const Scalar& scalar, std::span<const Result> results);

/// Returns `score` if a score is known, otherwise `kl`, or the time to the first token for a task that measures times.
[[nodiscard]] const Scalar& default_scalar(std::span<const Result> results);

}  // namespace kvscope::analysis
