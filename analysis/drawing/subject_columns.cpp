#include "analysis/drawing/subject_columns.h"

#include <utility>

namespace kvscope::analysis {
namespace {

struct Part {
    const char* name;
    const char* title;
    int Subject::*number;
    bool of_b;
};

Part part_of(SubjectKey key) {
    switch (key) {
        case SubjectKey::run:
            return {"run", "Run", &Subject::run, false};
        case SubjectKey::run_a:
            return {"run_a", "Run A", &Subject::run, false};
        case SubjectKey::run_b:
            return {"run_b", "Run B", &Subject::run, true};
        case SubjectKey::layer:
            return {"layer", "Layer", &Subject::layer, false};
        case SubjectKey::layer_a:
            return {"layer_a", "Layer a", &Subject::layer, false};
        case SubjectKey::layer_b:
            return {"layer_b", "Layer b", &Subject::layer, true};
        case SubjectKey::head:
            return {"head", "Head", &Subject::head, false};
        case SubjectKey::head_a:
            return {"head_a", "Head a", &Subject::head, false};
        case SubjectKey::head_b:
            return {"head_b", "Head b", &Subject::head, true};
        case SubjectKey::token:
            return {"token", "Token", &Subject::token, false};
        case SubjectKey::token_a:
            return {"token_a", "Token a", &Subject::token, false};
        case SubjectKey::token_b:
            return {"token_b", "Token b", &Subject::token, true};
        case SubjectKey::step:
            return {"step", "Step", &Subject::step, false};
    }
    return {};
}

}  // namespace

Column subject_column(SubjectKey key) {
    const Part part = part_of(key);
    return {part.name, part.title, "", ColumnType::integer};
}

Cell subject_cell(SubjectKey key, const SubjectPair& of) {
    const Part part = part_of(key);
    const int number = (part.of_b ? of.b : of.a).*part.number;
    return number < 0 ? Cell() : Cell(int64_t{number});
}

Column label_column() { return {"label", "Label", "", ColumnType::text}; }

SubjectTable::SubjectTable(std::string name, std::string title, std::vector<std::variant<SubjectKey, Column>> columns)
    : SubjectTable(std::move(columns)) {
    table_.name = std::move(name);
    table_.title = std::move(title);
}

SubjectTable::SubjectTable(std::vector<std::variant<SubjectKey, Column>> columns) : columns_(std::move(columns)) {
    for (const auto& column : columns_) {
        const auto* key = std::get_if<SubjectKey>(&column);
        table_.columns.push_back(key ? subject_column(*key) : std::get<Column>(column));
    }
}

void SubjectTable::add(const SubjectPair& of, std::vector<Cell> cells) {
    if (cells.size() == columns_.size()) {  // no column of subjects
        table_.rows.push_back({std::move(cells)});
        return;
    }
    std::vector<Cell> row;
    row.reserve(columns_.size());
    auto next = cells.begin();
    for (const auto& column : columns_) {
        const auto* key = std::get_if<SubjectKey>(&column);
        row.push_back(key ? subject_cell(*key, of) : std::move(*next++));
    }
    table_.rows.push_back({std::move(row)});
}

}  // namespace kvscope::analysis
