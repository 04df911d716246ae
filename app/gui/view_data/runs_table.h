#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/tables/table.h"
#include "app/gui/session/session.h"
#include "app/gui/view_data/comparison.h"

namespace kvscope::gui {

/// The table of runs (analysis/runs/cost_table.h) of all open traces, sorted and with differences of compared runs.
struct RunsTable {
    struct Column {
        analysis::Column column;
        size_t of = 0;  ///< index of the column in the table of runs
        bool is_difference = false;
        bool is_hidden_at_first = false;
    };
    struct Row {
        RunKey run;  ///< invalid for A − B
        const analysis::Row* row = nullptr;
        std::vector<analysis::Cell> cells;  ///< one per column
        std::string pinned;                 ///< "A", "B" or "A − B" for rows at the top; otherwise empty
    };

    /// Adds columns with differences of compared traces, or pinned rows A, B and A − B of compared runs.
    RunsTable(const std::vector<analysis::Column>& all, std::vector<Row> runs, const Compared& compared);

    std::vector<Column> columns;
    std::vector<Row> rows;

    [[nodiscard]] size_t n_pinned() const;
    [[nodiscard]] bool is_empty(size_t column) const;
    /// Sorts the rows that are not pinned. Empty cells come last in both directions.
    void sort(size_t column, bool descending);
    [[nodiscard]] double largest(size_t column) const;
    /// Returns the best number of each group of shown runs (see group_of()). Omits groups with equal cells.
    [[nodiscard]] std::map<std::string, double> best(size_t column, const Session& session) const;

    /// Returns the group of a row. Only numbers within a group are compared.
    [[nodiscard]] static std::string group_of(const Row& row);

 private:
    [[nodiscard]] const Row* find(const RunKey& run) const;
    void add_columns(const std::vector<analysis::Column>& all, bool with_differences);
    void fill_cells(const Compared& compared);
    void pin(const ComparedRuns& pair);
};

}  // namespace kvscope::gui
