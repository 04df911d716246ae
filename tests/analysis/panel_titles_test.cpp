#include "analysis/panel_titles.h"

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

TEST_CASE("titles of narrow panels are shorter in all of them, and stay different") {
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

}  // namespace kvscope::analysis
