#pragma once

#include <string>
#include <variant>
#include <vector>

#include "analysis/figure.h"
#include "analysis/tables/table.h"

namespace kvscope::analysis {

/// Columns of what a row is of: "run", "layer" …; of a row of two "run_a" and "run_b" for what differs.
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

/// "run" and "Run", with a suffix for the first or second of two.
Column subject_column(SubjectKey key);

/// Where a row's subjects do not say it, the cell is empty.
Cell subject_cell(SubjectKey key, const SubjectPair& of);

/// Words about a run, behind its number.
Column label_column();

/// Numbers by what they are of: its columns of numbers and words are filled by the caller, the others from subjects.
class SubjectTable {
 public:
    explicit SubjectTable(std::vector<std::variant<SubjectKey, Column>> columns);
    SubjectTable(std::string name, std::string title, std::vector<std::variant<SubjectKey, Column>> columns);

    /// @param cells one for each column that is no SubjectKey, in their order
    void add(const SubjectPair& of, std::vector<Cell> cells);
    void add(const Subject& of, std::vector<Cell> cells) { add({of, of}, std::move(cells)); }

    Table take() { return std::move(table_); }

 private:
    std::vector<std::variant<SubjectKey, Column>> columns_;
    Table table_;
};

}  // namespace kvscope::analysis
