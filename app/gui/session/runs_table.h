#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/tables/table.h"
#include "app/gui/session/comparison.h"
#include "app/gui/session/session.h"

namespace kvscope::gui {

/// The table of runs (analysis/cost_table.h) of all open traces as a person looks at it: with what compared runs differ
/// by, and sorted. Knows no ImGui.
struct RunsTable {
    /// A column of the table of runs, or what two runs differ by in it.
    struct Column {
        analysis::Column column;
        size_t of = 0;  ///< column of the table of runs
        bool is_difference = false;
        bool is_hidden_at_first = false;
    };
    /// A run, or A − B of two.
    struct Row {
        RunKey run;  ///< not valid: A − B
        const analysis::Row* row = nullptr;
        std::vector<analysis::Cell> cells;  ///< one for each column
        std::string pinned;                 ///< "A", "B", "A − B": stands above the others
    };

    /// Of two traces, a column of differences stands behind each number; of two runs, A, B and A − B stand first.
    /// @param all of the table of runs @param runs with neither cells nor pins yet
    RunsTable(const std::vector<analysis::Column>& all, std::vector<Row> runs, const Compared& compared);

    std::vector<Column> columns;
    std::vector<Row> rows;

    size_t n_pinned() const;
    bool is_empty(size_t column) const;
    /// What is pinned stays where it is; empty cells are last in either direction.
    void sort(size_t column, bool descending);
    /// Of the runs' numbers; 0 where there is none above.
    double largest(size_t column) const;
    /// Of each group of runs (analysis::Row::group) among those that are shown; none where the column has no best, the
    /// group is one run, or all its runs look alike.
    std::map<std::string, double> best(size_t column, const Session& session) const;

    /// Of a run: those that its numbers are compared with.
    static std::string group_of(const Row& row);

 private:
    const Row* find(const RunKey& run) const;
    void add_columns(const std::vector<analysis::Column>& all, bool with_differences);
    void fill_cells(const Compared& compared);
    void pin(const ComparedRuns& pair);
};

}  // namespace kvscope::gui
