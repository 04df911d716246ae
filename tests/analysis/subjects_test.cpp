// Checks that the subjects of a figure's parts are the subjects of the same numbers in its table.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <optional>

#include "analysis/drawing/subject_columns.h"
#include "tests/analysis/two_traces.h"

using namespace kvscope::analysis;
using namespace kvscope::analysis::test;

namespace {

constexpr std::array all_keys = {SubjectKey::run,     SubjectKey::run_a,   SubjectKey::layer,   SubjectKey::layer_a,
                                 SubjectKey::layer_b, SubjectKey::head,    SubjectKey::head_a,  SubjectKey::head_b,
                                 SubjectKey::token,   SubjectKey::token_a, SubjectKey::token_b, SubjectKey::step};

std::optional<int64_t> number_in(const Cell& cell) {
    const auto* number = std::get_if<int64_t>(&cell);
    return number ? std::optional(*number) : std::nullopt;
}

/// The numbers of a table that begins with subjects, by subject.
class NumbersBySubject {
 public:
    explicit NumbersBySubject(const Table& table) {
        for (const SubjectKey key : all_keys) {
            const auto column = std::find_if(table.columns.begin(), table.columns.end(),
                                             [&](const Column& each) { return each.name == subject_column(key).name; });
            if (column != table.columns.end())
                keys_.emplace_back(key, static_cast<size_t>(column - table.columns.begin()));
        }
        for (const Row& row : table.rows) {
            std::vector<std::optional<int64_t>> of;
            for (const auto& [key, column] : keys_) of.push_back(number_in(row.cells[column]));
            for (const Cell& each : row.cells) {
                if (const auto* value = std::get_if<double>(&each)) rows_[of].push_back(*value);
                if (const auto* value = std::get_if<int64_t>(&each)) rows_[of].push_back(static_cast<double>(*value));
            }
        }
    }

    /// Whether the table has a drawn number, which may be in per cent.
    bool has(const SubjectPair& subjects, double drawn) const {
        std::vector<std::optional<int64_t>> of;
        for (const auto& [key, column] : keys_) of.push_back(number_in(subject_cell(key, subjects)));
        const auto found = rows_.find(of);
        if (found == rows_.end()) return false;
        return std::any_of(found->second.begin(), found->second.end(), [&](double value) {
            return drawn == Approx(value).margin(1e-6) || drawn == Approx(100 * value).margin(1e-6);
        });
    }

    size_t n_keys() const { return keys_.size(); }

 private:
    std::vector<std::pair<SubjectKey, size_t>> keys_;
    std::map<std::vector<std::optional<int64_t>>, std::vector<double>> rows_;
};

/// Calls with each cell and point, and its subjects.
template <class Take>
void for_each_number(const Figure& figure, const Take& take) {
    for (const Panel& panel : figure.panels) {
        for (const Shape& shape : panel.shapes) {
            if (const auto* map = std::get_if<HeatMap>(&shape)) {
                for (size_t i = 0; i < map->values.size(); ++i)
                    take(subjects_of_cell(panel, *map, i / map->columns, i % map->columns),
                         static_cast<double>(map->values[i]));
            } else if (const auto* line = std::get_if<Line>(&shape)) {
                for (size_t i = 0; i < line->y.size(); ++i) {
                    const Subject of = subject_of_point(panel, shape, i);
                    if (!(of == Subject{})) take({of, of}, line->y[i]);  // not for a line that only joins points
                }
            } else if (const auto* points = std::get_if<Scatter>(&shape)) {
                for (size_t i = 0; i < points->y.size(); ++i) {
                    const Subject of = subject_of_point(panel, shape, i);
                    take({of, of}, points->y[i]);
                }
            }
        }
    }
}

}  // namespace

TEST_CASE("the table of a figure has its numbers with the same subjects", "[subjects]") {
    const SampleTrace sample;
    struct Case {
        const char* figure;
        const char* source;
        size_t n_keys;  ///< number of columns that identify a row
    };
    for (const auto& [name, source, n_keys] : {Case{"budgets", "", 3},
                                               Case{"reconstruction", "", 3},
                                               Case{"retention", "", 3},
                                               Case{"coverage", "", 2},
                                               Case{"recall", "", 3},
                                               Case{"difference", "", 3},
                                               Case{"head-statistics", "", 2},
                                               Case{"jsd", "", 3},
                                               Case{"jsd", "kv-heads", 3},
                                               Case{"jsd", "attention-by-similarity", 3},
                                               Case{"jsd", "scores", 4},
                                               Case{"query-similarity", "", 4},
                                               Case{"query-similarity", "mean-by-layer", 2},
                                               Case{"step-kl", "", 2},
                                               Case{"step-kl", "map", 2},
                                               Case{"spectrum", "", 2},
                                               Case{"spectrum", "contribution", 2},
                                               Case{"spectrum", "adjacent", 1},
                                               Case{"spectrum", "alignment", 2},
                                               Case{"spectrum", "layer-similarity", 2},
                                               Case{"spectrum", "head-similarity", 3}}) {
        CAPTURE(name, source);
        FigureOptions options;
        options.source = source;
        if (find_option(figure_definition(name), "layers"))
            options.layers = {0, 2};  // positions differ from layer numbers
        const Figure figure = made(sample.reader(), name, options);
        const NumbersBySubject numbers(table_of(sample.reader(), name, options));
        CHECK(numbers.n_keys() >= n_keys);
        size_t n_seen = 0, n_wrong = 0;
        for_each_number(figure, [&](const SubjectPair& of, double drawn) {
            if (std::isnan(drawn) || drawn == 0) return;  // tokens that no run keeps have no row
            ++n_seen;
            n_wrong += !numbers.has(of, drawn) && !numbers.has({of.b, of.a}, drawn);  // pairs are listed once
        });
        CHECK(n_seen > 1);
        CHECK(n_wrong == 0);
    }
}

TEST_CASE("a table of differences identifies layers, heads and both runs by number", "[subjects]") {
    const TwoTraces two;
    auto parts = two.parts();
    for (TracePart& part : parts) part.options.layers = {2};
    parts[0].options.runs = {"snapkv 24"};
    parts[1].options.runs = {"aperturekv 20"};
    const Table budgets = difference_numbers(figure_definition("budgets"), parts[0], parts[1]);
    REQUIRE(budgets.rows.size() == 2);
    CHECK(whole(cell(budgets, 0, "run_a")) == 2);
    CHECK(whole(cell(budgets, 0, "run_b")) == 3);
    for (size_t row = 0; row < 2; ++row) {
        CHECK(whole(cell(budgets, row, "layer")) == 2);
        CHECK(whole(cell(budgets, row, "head")) == static_cast<int64_t>(row));
    }
    CHECK_THROWS(cell(budgets, 0, "x"));
    CHECK_THROWS(cell(budgets, 0, "row"));

    for (TracePart& part : parts) part.options.runs.clear();
    const Table jsd = difference_numbers(figure_definition("jsd"), parts[0], parts[1]);
    REQUIRE(jsd.rows.size() == 16);
    CHECK(whole(cell(jsd, 7, "layer")) == 2);
    CHECK(whole(cell(jsd, 7, "head_a")) == 1);
    CHECK(whole(cell(jsd, 7, "head_b")) == 3);
    CHECK_THROWS(cell(jsd, 0, "run_a"));

    for (TracePart& part : parts) part.options.heads = {3};
    const Table spectrum = difference_numbers(figure_definition("spectrum"), parts[0], parts[1]);
    CHECK(whole(cell(spectrum, 0, "layer")) == 2);
    CHECK(whole(cell(spectrum, 0, "head")) == 3);
    CHECK(whole(cell(spectrum, spectrum.rows.size() - 1, "head")) == 1);  // the KV head that query head 3 uses
    CHECK(real(cell(spectrum, 0, "x")) == 1);
}

TEST_CASE("rows and curves of several traces have the subjects of their trace and run", "[subjects]") {
    const TwoTraces two;
    FigureOptions options;
    options.runs = {"snapkv"};
    const Figure figure = make_figure(figure_definition("step-kl"), two.parts(options));
    const auto& map = layer_of<Categories>(figure, 1);
    REQUIRE(map.rows == 4);
    for (size_t row = 0; row < 4; ++row) {
        const Subject of_row = subjects_of_cell(figure.panels[1], map, row, 3).a;
        CHECK(of_row.trace == row / 2);
        CHECK(of_row.run == static_cast<int>(1 + row % 2));
        CHECK(of_row.step == 3);
        CHECK(subject_of_point(figure.panels[0], figure.panels[0].shapes[row], 3) == of_row);
    }
}

TEST_CASE("a point beyond the axes of a panel has no items of these axes", "[subjects]") {
    Panel panel;
    panel.subject.run = 5;
    panel.x.min = -0.5;
    panel.x.max = 1.5;
    panel.x.dimension = Dimension::layer;
    panel.x.numbers = {3, 8};
    CHECK(subjects_at_coordinates(panel, 1.2, 0).a == Subject{.run = 5, .layer = 8});
    CHECK(subjects_at_coordinates(panel, 1.6, 0).a == Subject{.run = 5});
    CHECK(subjects_at_coordinates(panel, -3, 0).a == Subject{.run = 5});
    panel.y = panel.x;
    const SubjectPair two = subjects_at_coordinates(panel, 0, 1);
    CHECK(two.a.layer == 8);
    CHECK(two.b.layer == 3);
}
