#pragma once

#include <string>
#include <variant>
#include <vector>

#include "analysis/drawing/figure.h"
#include "analysis/tables/table.h"

namespace kvscope::analysis {

/// Columns that identify a row's items: "run", "layer" …; in a row about two runs, "run_a" and "run_b".
enum class SubjectKey {
    run,
    run_a,
    run_b,
    layer,
    layer_a,
    layer_b,
    head,
    head_a,
    head_b,
    token,
    token_a,
    token_b,
    step
};

/// Returns the column of a key: "run" with the title "Run". Keys of A or B have a suffix.
[[nodiscard]] Column subject_column(SubjectKey key);

/// Returns an empty cell if the subjects do not contain this item.
[[nodiscard]] Cell subject_cell(SubjectKey key, const SubjectPair& of);

[[nodiscard]] Column label_column();

/// A table whose rows begin with their items. The caller supplies the other cells.
class SubjectTable {
 public:
    explicit SubjectTable(std::vector<std::variant<SubjectKey, Column>> columns);
    SubjectTable(std::string name, std::string title, std::vector<std::variant<SubjectKey, Column>> columns);

    /// @param cells one per column that is not a SubjectKey, in order
    void add(const SubjectPair& of, std::vector<Cell> cells);
    void add(const Subject& of, std::vector<Cell> cells) { add({of, of}, std::move(cells)); }

    [[nodiscard]] Table take() { return std::move(table_); }

 private:
    std::vector<std::variant<SubjectKey, Column>> columns_;
    Table table_;
};

}  // namespace kvscope::analysis
