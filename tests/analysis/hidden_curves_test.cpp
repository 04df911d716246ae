#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "analysis/drawing/covered_curves.h"

namespace kvscope::analysis::test {
namespace {

Line line(std::vector<double> x, std::vector<double> y, Dash dash = Dash::solid) {
    Line of;
    of.x = std::move(x);
    of.y = std::move(y);
    of.style.dash = dash;
    return of;
}

}  // namespace

TEST_CASE("a curve is hidden by another curve with the same course") {
    Panel panel;
    panel.y.max = 100;
    panel.x.scale = Scale::logarithmic;
    panel.x.min = 1;
    panel.x.max = 1000;
    const Line above = line({1, 10, 100}, {0, 50, 100});
    CHECK(is_line_hidden_by(above, above, panel));
    CHECK(is_line_hidden_by(line({10, 100}, {50, 100}), above, panel));     // a part of it
    CHECK(is_line_hidden_by(line({10, 100}, {50.2, 99.8}), above, panel));  // closer than the width of a line
    CHECK(is_line_hidden_by(line({std::sqrt(10.0)}, {25}), above, panel));  // on the line between two points
    CHECK_FALSE(is_line_hidden_by(line({10, 100}, {52, 100}), above, panel));
    CHECK_FALSE(is_line_hidden_by(line({10, 200}, {50, 100}), above, panel));  // continues beyond its end
    CHECK_FALSE(
        is_line_hidden_by(above, line({1, 10, 100}, {0, 50, 100}, Dash::dashed), panel));  // visible in its gaps
    CHECK(is_line_hidden_by(line({1, 10}, {0, 50}, Dash::dashed), line({1, 10}, {0, 50}, Dash::dashed), panel));
    CHECK_FALSE(is_line_hidden_by(line({1, 10}, {NAN, NAN}), above, panel));  // has no points
    CHECK(is_line_hidden_by(line({1, 10}, {NAN, 50}), above, panel));
    CHECK_FALSE(is_line_hidden_by(line({1, 10}, {0, 50}), line({1, 10}, {NAN, 50}), panel));
}

TEST_CASE("labels of close horizontal lines stand side by side") {
    Panel panel;
    panel.y.max = 100;
    for (const auto& [value, label] : std::vector<std::pair<double, std::string>>{
             {99, "full, question seen"}, {50, "random"}, {96, "full, question hidden"}, {99, "other"}}) {
        Rule rule;
        rule.value = value;
        rule.label = label;
        panel.shapes.emplace_back(rule);
    }
    place_labels_side_by_side(panel);
    const auto beside = [&](size_t shape) { return std::get<Rule>(panel.shapes[shape]).beside; };
    CHECK(beside(0).empty());
    CHECK(beside(1).empty());
    CHECK(beside(2).starts_with("full, question seen "));
    CHECK(beside(3).starts_with("full, question seen "));
    CHECK(beside(3).find("full, question hidden ") != std::string::npos);
}

}  // namespace kvscope::analysis::test
