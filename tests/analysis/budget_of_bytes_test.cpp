#include <catch2/catch.hpp>
#include <map>
#include <variant>

#include "analysis/drawing/figure_definition.h"
#include "analysis/runs/cost_table.h"
#include "tests/analysis/policy_trace.h"

using namespace kvscope::analysis;
namespace trace = kvscope::trace;

namespace {

size_t column_of(const Table& table, const std::string& name) {
    for (size_t c = 0; c < table.columns.size(); ++c)
        if (table.columns[c].name == name) return c;
    throw std::out_of_range(name);
}

/// Returns the budget of each run, by its number.
std::map<int64_t, Cell> budgets_in(const Table& table) {
    std::map<int64_t, Cell> budgets;
    for (const Row& row : table.rows)
        budgets[std::get<int64_t>(row.cells[column_of(table, "run")])] = row.cells[column_of(table, "budget")];
    return budgets;
}

/// Returns the x value of each point in a panel, by run.
std::map<int, double> places_of(const Panel& panel) {
    std::map<int, double> places;
    for (const Shape& shape : panel.shapes)
        if (const auto* point = std::get_if<Scatter>(&shape)) places[point->subject.run] = point->x.at(0);
    return places;
}

}  // namespace

TEST_CASE("tables show budgets of bytes as shares and budgets of entries as numbers") {
    const test::PolicyTrace stored({{"full", 60}, {"think:window=8,recent=8", 45}, {"snapkv:window=8", 20}});
    const trace::Reader reader = stored.reader();
    for (const Table& table : {cost_table(reader, 0), figure_definition("coverage").numbers(reader, {})}) {
        CAPTURE(table.name);
        auto budgets = budgets_in(table);
        CHECK(std::get<kvscope::SharedText>(budgets[1]).string() == "75 %");
        CHECK(std::get<int64_t>(budgets[2]) == 20);
    }
    CHECK(std::get<int64_t>(budgets_in(cost_table(reader, 0))[0]) == 60);
}

TEST_CASE("an axis of budgets shows entries, or per cent of the full cache if a budget is a share of bytes") {
    const test::PolicyTrace stored({{"full", 60},
                                    {"think:window=8,recent=8", 45},
                                    {"snapkv:window=8", 20},
                                    {"snapkv:window=8", 30},
                                    {"think:window=8,recent=8", 54}});
    const trace::Reader reader = stored.reader();
    FigureOptions options;
    const auto model_panel = [&](std::vector<RunChoice> runs) {
        options.runs = std::move(runs);
        return figure_definition("coverage").make(reader, options).panels.at(1);
    };
    const Panel entries = model_panel({2, 3});
    CHECK(entries.x.unit == "entries per head");
    CHECK(places_of(entries) == std::map<int, double>{{2, 20}, {3, 30}});
    for (const auto& runs : std::vector<std::vector<RunChoice>>{{1, 4}, {1, 2, 3, 4}}) {
        const Panel shares = model_panel(runs);
        CHECK(shares.x.unit == "% of the full cache");
        for (const auto& [run, place] : places_of(shares))
            CHECK(place == Approx(run == 1 ? 75 : run == 2 ? 100.0 / 3 : run == 3 ? 50 : 90));
        CHECK(places_of(shares).size() == runs.size());
    }
}

TEST_CASE("budgets are joined in ascending order and drawn to scale") {
    const test::PolicyTrace stored({{"full", 60},
                                    {"snapkv:window=8", 40},
                                    {"snapkv:window=8", 10},
                                    {"snapkv:window=8", 20},
                                    {"snapkv:window=8", 21}});
    const trace::Reader reader = stored.reader();
    const Panel panel = figure_definition("coverage").make(reader, {}).panels.at(1);
    CHECK(panel.x.scale == Scale::logarithmic);
    std::vector<std::string> ticks;
    for (const Tick& tick : panel.x.ticks) ticks.push_back(tick.label);
    CHECK(ticks == std::vector<std::string>{"10", "20", "40"});  // the label of 21 does not fit
    int n_lines = 0;
    for (const Shape& shape : panel.shapes)
        if (const auto* line = std::get_if<Line>(&shape)) {
            ++n_lines;
            CHECK(line->x == std::vector<double>{10, 20, 21, 40});
            const auto points = figure_definition("coverage").numbers(reader, {});
            std::vector<double> shares;  // of the whole model, for runs 2, 3, 4, 1
            for (const int run : {2, 3, 4, 1})
                for (const Row& row : points.rows)
                    if (std::get<int64_t>(row.cells[column_of(points, "run")]) == run &&
                        !std::holds_alternative<int64_t>(row.cells[column_of(points, "layer")]))
                        shares.push_back(100 * std::get<double>(row.cells[column_of(points, "share")]));
            REQUIRE(shares.size() == line->y.size());
            for (size_t i = 0; i < shares.size(); ++i) CHECK(line->y[i] == Approx(shares[i]));
        }
    CHECK(n_lines == 1);
}
