#include "analysis/drawing/panel_titles.h"

#include <catch2/catch.hpp>

namespace kvscope::analysis {
namespace {

Panel of_layer(int layer, const std::string& title) {
    Panel panel;
    panel.title = title;
    panel.subject.layer = layer;
    return panel;
}

std::vector<std::string> titles_of(const Figure& figure, size_t most_characters) {
    return panel_titles(figure, [&](size_t, const std::string& text) { return text.size() <= most_characters; });
}

}  // namespace

TEST_CASE("titles of narrow panels are all shortened and stay different") {
    Figure figure;
    figure.panels = {of_layer(2, "Layer 2"), of_layer(12, "Layer 12")};
    CHECK(titles_of(figure, 8) == std::vector<std::string>{"Layer 2", "Layer 12"});
    CHECK(titles_of(figure, 7) == std::vector<std::string>{"L2", "L12"});
    CHECK(titles_of(figure, 2) == std::vector<std::string>{"2", "12"});
    CHECK(titles_of(figure, 0) == std::vector<std::string>{"2", "12"});

    figure.panels = {of_layer(2, "Keys, layer 2"), of_layer(2, "Values, layer 2"), of_layer(2, "snapkv @ 64")};
    CHECK(titles_of(figure, 15).front() == "Keys, layer 2");
    CHECK(titles_of(figure, 11) == std::vector<std::string>{"Keys L2", "Values L2", "snapkv @ 64"});
    CHECK(titles_of(figure, 5) == std::vector<std::string>{"K L2", "V L2", "snapkv @ 64"});
}

TEST_CASE("titles of several traces are shortened after the trace's name, or omitted below a heading") {
    Figure figure;
    figure.panels = {of_layer(2, "one: Layer 2"), of_layer(12, "two: Layer 12")};
    figure.panels[0].trace_name = "one";
    figure.panels[1].trace_name = "two";
    figure.panels[1].row = 1;
    figure.rows = 3;
    figure.panels.push_back(figure.panels[1]);
    figure.panels[2].row = 2;
    CHECK(titles_of(figure, 8) == std::vector<std::string>{"one: L2", "two: L12", "two: L12"});
    CHECK(trace_heading_of_row(figure, 0).empty());
    figure.trace_by_trace = true;
    CHECK(trace_heading_of_row(figure, 0) == "one");
    CHECK(trace_heading_of_row(figure, 1) == "two");
    CHECK(trace_heading_of_row(figure, 2).empty());
    CHECK(titles_of(figure, 8) == std::vector<std::string>{"one: L2", "two: L12", "two: L12"});
    CHECK(panel_titles(
              figure, [](size_t, const std::string&) { return true; }, true) ==
          std::vector<std::string>{"Layer 2", "Layer 12", "Layer 12"});
}

}  // namespace kvscope::analysis
