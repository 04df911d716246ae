#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/results/scalars.h"
#include "analysis/results/settings.h"
#include "analysis/statistics/bootstrap.h"
#include "analysis/statistics/paired_difference.h"

namespace kvscope::analysis {

/// Names of the settings (setting_named()) and of the scalar (scalar_named()) of a summary.
struct SummaryRequest {
    std::string scalar;
    std::vector<std::string> rows = {"policy"};
    std::string columns = {};                        ///< empty: one column
    std::string blocks = {};                         ///< empty: one block
    std::string against = {};                        ///< policy setting with which all others are compared; empty: none
    std::map<std::string, std::string> labels = {};  ///< new labels of policy settings
    std::string validity = {};                       ///< validity_of_tasks() of all runs, also of those not shown
    std::optional<bool> in_percent = {};             ///< Summary::in_percent; nullopt: only scores
    std::vector<std::string> extra_columns = {"mean"};  ///< Summary::extra_columns
};

/// Names for SummaryRequest::extra_columns: mean of the columns, and number of samples.
inline constexpr const char* mean_column = "mean";
inline constexpr const char* n_column = "n";

/// Difference of a cell and the reference run, over samples that both answered.
struct Comparison {
    PairedDifference paired;
    double adjusted_p = 1;  ///< by holm(), for all comparisons of the summary

    [[nodiscard]] bool is_distinguishable() const { return adjusted_p <= 0.05; }
};

struct SummaryCell {
    bool has_rows = false;
    bool is_full = false;              ///< contains only full runs
    bool is_reference = false;         ///< contains only runs of the setting `against`
    std::optional<Estimate> estimate;  ///< nullopt if no value is known
    std::size_t n_failed = 0;          ///< failed runs
    /// nullopt also for full runs if Scalar::is_trivial_of_full(), so that Holm's method does not count them
    std::optional<Comparison> comparison;
};

/// Means of a scalar over samples, by the settings of the runs.
struct Summary {
    const Scalar* scalar = nullptr;
    bool in_percent = false;                 ///< whether tables for people and drawings show per cent
    std::vector<std::string> extra_columns;  ///< columns of summary_table() after those of the setting
    std::string against;                     ///< label of the reference run's setting
    std::vector<Setting> row_settings;
    std::optional<Setting> column_setting, block_setting;
    std::vector<std::vector<SettingValue>> rows;  ///< one value per row setting
    std::vector<SettingValue> columns, blocks;    ///< one element if there is no setting
    std::vector<SummaryCell> cells;               ///< shape (blocks, rows, columns)
    std::size_t n_comparisons = 0;
    bool has_other_samples = false;  ///< Cells of one column have different samples.
    std::string verdict;             ///< SummaryRequest::validity, if the scalar is a score
    /// Settings and origins that differ between runs whose numbers are averaged or compared: "device: cpu, cuda".
    std::vector<std::string> mixed;

    [[nodiscard]] const SummaryCell& cell(std::size_t block, std::size_t row, std::size_t column) const {
        return cells[(block * rows.size() + row) * columns.size() + column];
    }
    /// Returns the mean of the row's means; nullopt for one column, or if a cell has no value.
    [[nodiscard]] std::optional<double> mean_of_columns(std::size_t block, std::size_t row) const;
    /// Returns the unit of tables and drawings: "%" for `in_percent`.
    [[nodiscard]] std::string unit() const { return in_percent ? "%" : std::string(scalar->unit); }
    /// Returns the row's label: "full", or "snapkv @ 64" for several settings.
    [[nodiscard]] std::string row_label(std::size_t row) const;
    /// Describes samples, comparisons, `mixed` and the verdict in sentences.
    [[nodiscard]] std::string note() const;
};

/// Averages a scalar over the samples of each cell. NaN values are left out. Several runs of one sample in one cell
/// count as their mean. Questions about one context are one cluster. The order of the samples has no effect.
/// @throws FigureError for unknown names
[[nodiscard]] Summary summarize(std::span<const Result> results, const SummaryRequest& request);

}  // namespace kvscope::analysis
