#include "analysis/drawing/short_label.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "tests/analysis/sample_figures.h"

using namespace kvscope::analysis;
using namespace kvscope::analysis::test;

namespace {

size_t n_characters(const std::string& text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// Returns the sample with new labels for runs 1 and 2.
class CalledOtherwise {
 public:
    CalledOtherwise(const std::string& one, const std::string& other)
        : reader_((write(one, other), folder_ / "t.h5")) {}
    const kvscope::trace::Reader& reader() const { return reader_; }

 private:
    void write(const std::string& one, const std::string& other) {
        namespace trace = kvscope::trace;
        const SampleTrace sample;
        trace::Writer writer(folder_ / "t.h5", trace::sample::recipe, {.force = true, .generator = "sample"});
        const trace::sample::Options options;
        writer.write_model(trace::sample::model(options));
        writer.write_prompt(0, trace::sample::prompt(options, 0));
        for (int run = 0; run < 3; ++run) {
            auto record = sample.reader().run_record(0, run);
            if (run > 0) record.label = run == 1 ? one : other;
            writer.write_run(0, run, record);
        }
        writer.finish();
    }

    kvscope::trace::sample::TemporaryFolder folder_;
    kvscope::trace::Reader reader_;
};

}  // namespace

TEST_CASE("a short label has files without folders and no middle") {
    CHECK(short_label("snapkv:window=16 @ 64") == "snapkv:window=16 @ 64");
    CHECK(short_label("echokv:maps=/home/me/maps/echo.safetensors @ 50 %") == "echokv:maps=echo.safetensors @ 50 %");
    CHECK(short_label("echokv:maps=a/b.st,recent=9 @ 16, keys") == "echokv:maps=b.st,recent=9 @ 16, keys");
    CHECK(short_label("echokv:switches=16/40 @ 16") == "echokv:switches=16/40 @ 16");
    CHECK(short_label("") == "");
    const std::string cut = short_label("echokv:maps=/x/e.st,switches=1/2,3/4,5/6,7/8,9/10,11/12,13/14,15/16 @ 50 %");
    CHECK(n_characters(cut) == 40);
    CHECK(cut.starts_with("echokv:maps=e.st,switch"));
    CHECK(cut.ends_with("15/16 @ 50 %"));
    CHECK(n_characters(short_label(std::string(30, 'x') + "äöüäöüäöüäöüäöüäöüäöüäöü")) == 40);
}

TEST_CASE("figures have short labels with their full text, and tables have full labels") {
    const std::string folder = "/a/folder/whose/name/is/as/long/as/those/of/real/ones/are";
    const std::string one = "snapkv:maps=" + folder + "/one.safetensors @ 16";
    const std::string other = "snapkv:maps=" + folder + "/other.safetensors @ 24";
    const CalledOtherwise trace(one, other);
    const char* name = GENERATE("step-kl", "cost", "retention", "coverage", "budgets");
    CAPTURE(name);
    const Figure figure = made(trace.reader(), name, {});
    std::set<std::string> wholes;
    const auto look = [&](const std::string& label, const std::string& whole) {
        CHECK(n_characters(label) <= 40);
        if (!whole.empty()) wholes.insert(whole);
    };
    for (const LegendEntry& entry : figure.legend) look(entry.label, entry.whole);
    for (const Panel& panel : figure.panels) {
        look(panel.title, panel.whole_title);
        if (panel.y.dimension == Dimension::run)
            for (const Tick& tick : panel.y.ticks) look(tick.label, tick.whole);
    }
    CHECK(wholes == std::set<std::string>{one, other});
    const Table table = table_of(trace.reader(), name, {});
    bool is_whole = false;
    for (const auto& row : table.rows)
        for (const Cell& cell : row.cells) {
            const auto* text = std::get_if<kvscope::SharedText>(&cell);
            is_whole = is_whole || (text && *text == one);
        }
    CHECK(is_whole);
}

TEST_CASE("short labels are as distinct as full labels") {
    const std::string one = "snapkv:maps=/one/maps.safetensors @ 16";
    const std::string other = "snapkv:maps=/other/maps.safetensors @ 16";
    const CalledOtherwise trace(one, other);
    const Figure figure = made(trace.reader(), "step-kl", {});
    std::set<std::string> labels;
    for (const Tick& tick : figure.panels.at(1).y.ticks) labels.insert(tick.label);
    CHECK(labels.size() == figure.panels.at(1).y.ticks.size());
    Figure alike;
    const std::string long_path(60, 'p');
    alike.legend = {{"a:m=/" + long_path + "/1/" + long_path, LegendEntry::Symbol::line, {}},
                    {"a:m=/" + long_path + "/2/" + long_path, LegendEntry::Symbol::line, {}}};
    shorten_labels(alike);
    CHECK(alike.legend[0].label != alike.legend[1].label);
}

TEST_CASE("the title of a difference has both labels, each shortened separately") {
    const std::string one = "snapkv:maps=/a/folder/one.safetensors @ 16";
    const std::string other = "snapkv:maps=/a/folder/other.safetensors @ 24";
    const CalledOtherwise trace(one, other);
    FigureOptions options;
    options.runs = {1, 2};
    const Figure figure = made(trace.reader(), "difference", options);
    CHECK(figure.panels.at(0).title == "A: snapkv:maps=one.safetensors @ 16   B: snapkv:maps=other.safetensors @ 24");
    CHECK(figure.panels.at(0).whole_title == "A: " + one + "   B: " + other);

    const CalledOtherwise plain("streaming-llm @ 64", "streaming-llm @ 256");
    const Figure of_plain = made(plain.reader(), "difference", options);
    CHECK(of_plain.panels.at(0).title == "A: streaming-llm @ 64   B: streaming-llm @ 256");
    CHECK(of_plain.panels.at(0).whole_title.empty());
}

TEST_CASE("the suffix of a run's label in a legend does not count for its length") {
    const std::string label = "a-trace: pyramidkv:window=16,beta=20";  // 36 characters
    const std::string behind = ": 90.0 % at 1,234";
    const std::string long_label = label + ",pool=maximum";
    Figure figure;
    figure.legend = {{label + behind, LegendEntry::Symbol::line, {}, "", behind},
                     {long_label + behind, LegendEntry::Symbol::line, {}, "", behind}};
    shorten_labels(figure);
    CHECK(figure.legend[0].label == label + behind);
    CHECK(figure.legend[0].whole.empty());
    CHECK(figure.legend[1].label == short_label(long_label) + behind);
    CHECK(figure.legend[1].whole == long_label + behind);
}
