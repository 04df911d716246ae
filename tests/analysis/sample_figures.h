// Figures of the sample trace, and access to their parts.
#pragma once

#include <stdexcept>
#include <string>

#include "analysis/drawing/figure_definition.h"
#include "tests/trace/sample_trace.h"
#include "trace/reader.h"

namespace kvscope::analysis::test {

/// Runs of the sample: 0 full, 1 snapkv 16, 2 snapkv 24, 3 aperturekv 20, 4 kvslimmer 12, 5 think, 6 snapkv 4 (failed).
class SampleTrace {
 public:
    explicit SampleTrace(const trace::sample::Options& options = {})
        : reader_((trace::sample::write(folder_ / "t.h5", options), folder_ / "t.h5")) {}
    [[nodiscard]] const trace::Reader& reader() const { return reader_; }

 private:
    trace::sample::TemporaryFolder folder_;
    trace::Reader reader_;
};

[[nodiscard]] inline Figure made(const trace::Reader& reader, const char* name, const FigureOptions& options) {
    return figure_definition(name).make(reader, options);
}

[[nodiscard]] inline Table table_of(const trace::Reader& reader, const char* name, const FigureOptions& options) {
    return figure_definition(name).numbers(reader, options);
}

template <class Layer>
[[nodiscard]] const Layer& layer_of(const Figure& figure, size_t panel, size_t layer = 0) {
    return std::get<Layer>(figure.panels.at(panel).shapes.at(layer));
}

/// Returns the cell of a row by the column's name.
[[nodiscard]] inline const Cell& cell(const Table& table, size_t row, const std::string& column) {
    for (size_t i = 0; i < table.columns.size(); ++i)
        if (table.columns[i].name == column) return table.rows.at(row).cells.at(i);
    throw std::out_of_range("no column " + column);
}

[[nodiscard]] inline int64_t whole(const Cell& cell) { return std::get<int64_t>(cell); }
[[nodiscard]] inline double real(const Cell& cell) { return std::get<double>(cell); }

}  // namespace kvscope::analysis::test
