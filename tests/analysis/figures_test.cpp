// Figures of one run, of two runs and of the model: pictures and tables show the numbers of the trace.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "analysis/drawing/figure_definition.h"
#include "analysis/figures_of_several_traces.h"
#include "analysis/runs/run_choice.h"
#include "tests/analysis/sample_figures.h"

using namespace kvscope::analysis;
using namespace kvscope::analysis::test;
using Catch::Matchers::Contains;
namespace trace = kvscope::trace;
namespace schema = kvscope::trace::schema;
using trace::Place;

namespace {

std::set<uint32_t> tokens_of(const trace::Reader& reader, int run, size_t layer) {
    std::set<uint32_t> tokens;
    const auto kept = reader.kept(0, run);
    for (size_t row = 0; row < kept->n_rows; ++row) {
        tokens.insert(kept->row(layer, row).begin(), kept->row(layer, row).end());
    }
    return tokens;
}

int heads_keeping(const trace::Reader& reader, int run, size_t layer, uint32_t token) {
    int n = 0;
    const auto kept = reader.kept(0, run);
    for (size_t row = 0; row < kept->n_rows; ++row) {
        const auto tokens = kept->row(layer, row);
        n += std::binary_search(tokens.begin(), tokens.end(), token);
    }
    return n;
}

}  // namespace

TEST_CASE("evenly spaced numbers include both ends") {
    CHECK(evenly_spaced(30, 4) == std::vector<int>{0, 10, 19, 29});
    CHECK(evenly_spaced(3, 9) == std::vector<int>{0, 1, 2});
    CHECK(evenly_spaced(5, 1) == std::vector<int>{0});
    CHECK(evenly_spaced(0, 4).empty());
}

TEST_CASE("query similarity: maps of the chosen layers and heads, and their means as a curve") {
    const SampleTrace sample;
    FigureOptions options;
    options.layers = {2};
    options.heads = {1, 3};
    const auto stored = sample.reader().read_layer<float>(Place::of_prompt(0), schema::prompt::query_similarity, 2);
    const Figure maps = made(sample.reader(), "query-similarity", options);
    REQUIRE(maps.panels.size() == 2);
    CHECK(layer_of<HeatMap>(maps, 1).values == std::vector<float>(stored.begin() + 3 * 64, stored.begin() + 4 * 64));
    CHECK(maps.panels[0].x.max == 47.5);  // the window is the end of the prompt
    CHECK(maps.panels[0].x.min == 39.5);
    const Table table = table_of(sample.reader(), "query-similarity", options);
    REQUIRE(table.rows.size() == 128);
    CHECK(whole(table.rows[64 + 9].cells[2]) == 41);
    CHECK(real(table.rows[64 + 9].cells[4]) == static_cast<double>(stored[3 * 64 + 9]));

    options.source = "mean-by-layer";
    double sum = 0;
    for (size_t head : {1, 3}) {
        for (size_t a = 0; a < 8; ++a) {
            for (size_t b = 0; b < 8; ++b) {
                if (a != b) sum += static_cast<double>(stored[head * 64 + a * 8 + b]) / 112;
            }
        }
    }
    const Figure curve = made(sample.reader(), "query-similarity", options);
    const Line& line = layer_of<Line>(curve, 0);
    CHECK(line.y.at(0) == Approx(sum));
    CHECK(line.low.at(0) <= line.y[0]);
    CHECK(line.high.at(0) >= line.y[0]);
    CHECK(real(table_of(sample.reader(), "query-similarity", options).rows.at(0).cells[2]) == line.y[0]);
    options.heads = {4};
    CHECK_THROWS_WITH(made(sample.reader(), "query-similarity", options), Contains("no query head 4"));
}

TEST_CASE("spectrum: eigenvalues, their shares and the similarity of adjacent tokens") {
    const SampleTrace sample;
    FigureOptions options;
    options.layers = {1};
    const auto stored = sample.reader().read_layer<float>(Place::of_model(), schema::model::spectrum_k, 1);
    const Figure whole_layers = made(sample.reader(), "spectrum", options);
    REQUIRE(whole_layers.panels.size() == 3);
    const Line& line = layer_of<Line>(whole_layers, 1);
    REQUIRE(line.y.size() == stored.size());
    CHECK(line.y[5] == static_cast<double>(stored[5]));
    CHECK(whole_layers.panels[1].y.scale == Scale::logarithmic);

    options.source = "cumulative";
    const Table shares = table_of(sample.reader(), "spectrum", options);
    CHECK(real(shares.rows.back().cells[4]) == Approx(1));
    options.heads = {3};  // query head 3 of 4 uses KV head 1 of 2
    const auto of_heads = sample.reader().read_layer<float>(Place::of_model(), schema::model::head_spectrum_v, 1);
    options.source = "";
    const Table heads = table_of(sample.reader(), "spectrum", options);
    REQUIRE(heads.rows.size() == 3 * 8);
    CHECK(whole(heads.rows[16].cells[2]) == 1);
    CHECK(real(heads.rows[16].cells[4]) == static_cast<double>(of_heads[8]));

    options = {};
    options.source = "adjacent";
    const auto neighbours = sample.reader().read<float>(Place::of_prompt(0), schema::prompt::adjacent_similarity_v);
    CHECK(layer_of<Line>(made(sample.reader(), "spectrum", options), 0, 2).y.at(2) ==
          static_cast<double>(neighbours[2]));
    options.source = "eigen";
    CHECK_THROWS_WITH(made(sample.reader(), "spectrum", options), Contains("cumulative"));
}

TEST_CASE(
    "spectrum: contributions of modes are of a head, or the mean over heads, and sum to the cosine of adjacent "
    "tokens") {
    const SampleTrace sample;
    FigureOptions options;
    options.source = "contribution";
    options.layers = {1};
    const auto stored = sample.reader().read_layer<float>(Place::of_prompt(0), schema::prompt::mode_contribution_q, 1);
    const auto cosines = sample.reader().read<float>(Place::of_prompt(0), schema::prompt::adjacent_similarity_q);
    const Figure figure = made(sample.reader(), "spectrum", options);
    REQUIRE(figure.panels.size() == 3);
    const Line& means = layer_of<Line>(figure, 0);
    REQUIRE(means.y.size() == 8);
    double sum = 0;
    for (const double contribution : means.y) sum += contribution;
    CHECK(sum == Approx(static_cast<double>(cosines[1])));
    CHECK(figure.panels[0].y.scale == Scale::linear);
    CHECK(real(table_of(sample.reader(), "spectrum", options).rows.at(3).cells[4]) == means.y[3]);
    options.heads = {3};
    CHECK(layer_of<Line>(made(sample.reader(), "spectrum", options), 0).y[5] == static_cast<double>(stored[3 * 8 + 5]));
    CHECK(whole(table_of(sample.reader(), "spectrum", options).rows[8].cells[2]) ==
          1);  // the KV head that the query head uses
}

TEST_CASE("spectrum: similarity maps of layers and of heads omit the diagonal") {
    const SampleTrace sample;
    FigureOptions options;
    options.source = "layer-similarity";
    const auto stored = sample.reader().read<float>(Place::of_prompt(0), schema::prompt::layer_similarity_v);
    const Figure layers = made(sample.reader(), "spectrum", options);
    REQUIRE(layers.panels.size() == 2);
    const HeatMap& map = layer_of<HeatMap>(layers, 1);
    CHECK(map.values.at(1) == stored.at(1));
    CHECK(std::isnan(map.values.at(4)));
    CHECK(layers.color_scales.at(0).min == -layers.color_scales.at(0).max);
    const Table table = table_of(sample.reader(), "spectrum", options);
    REQUIRE(table.rows.size() == 3);
    CHECK(real(table.rows[1].cells[3]) == static_cast<double>(stored.at(2)));
    options.layers = {0, 2};
    CHECK(layer_of<HeatMap>(made(sample.reader(), "spectrum", options), 1).values.at(1) == stored.at(2));
    options.layers = {2};
    CHECK_THROWS_AS(made(sample.reader(), "spectrum", options), NothingToShow);

    options.source = "head-similarity";
    const auto heads = sample.reader().read<float>(Place::of_prompt(0), schema::prompt::head_similarity_k);
    const Figure within = made(sample.reader(), "spectrum", options);
    REQUIRE(within.panels.size() == 2);
    CHECK(within.panels[0].title == "Keys, layer 2");
    CHECK(layer_of<HeatMap>(within, 0).values.at(1) == heads.at(9));
    CHECK(table_of(sample.reader(), "spectrum", options).rows.size() == 1);
}

TEST_CASE("spectrum: the alignment figure has a point for each query head of the layers") {
    const SampleTrace sample;
    FigureOptions options;
    options.source = "alignment";
    options.layers = {0, 2};
    const auto c12 = sample.reader().read<float>(Place::of_prompt(0), schema::prompt::gradient_alignment_c12);
    const Figure figure = made(sample.reader(), "spectrum", options);
    REQUIRE(figure.panels.size() == 3);
    const Scatter& points = layer_of<Scatter>(figure, 0, 2);  // after the dashed line and layer 0
    CHECK(points.label == "layer 2");
    REQUIRE(points.y.size() == 4);
    CHECK(points.y[3] == static_cast<double>(c12.at(11)));
    CHECK(layer_of<Line>(figure, 1).y.back() > 0);  // c22 has the sign of c11
    CHECK(layer_of<Line>(figure, 2).y.back() < 0);  // c22 and c12 have opposite signs
    const Table table = table_of(sample.reader(), "spectrum", options);
    REQUIRE(table.rows.size() == 8);
    CHECK(real(table.rows[7].cells[3]) == static_cast<double>(c12.at(11)));
    options.heads = {1};
    CHECK_THROWS_AS(check_options(figure_definition("spectrum"), options), FigureError);
}

TEST_CASE("spectrum of a trace that contains only the model") {
    const trace::sample::TemporaryFolder folder;
    {
        trace::Writer writer(folder / "t.h5", trace::sample::recipe, {.generator = "sample"});
        writer.write_model(trace::sample::model());
        writer.finish();
    }
    const trace::Reader reader(folder / "t.h5");
    CHECK(made(reader, "spectrum", {}).panels.size() == 3);
    FigureOptions options;
    options.source = "adjacent";
    CHECK_THROWS_AS(made(reader, "spectrum", options), NothingToShow);
}

TEST_CASE("budgets: entries of each head, with heads from top to bottom and layers from left to right") {
    const SampleTrace sample;
    FigureOptions options;
    options.runs = {"4", "full"};
    const auto kept = sample.reader().kept(0, 4);
    const Figure figure = made(sample.reader(), "budgets", options);
    const HeatMap& map = layer_of<HeatMap>(figure, 1);
    REQUIRE(map.rows == 2);
    REQUIRE(map.columns == 3);
    CHECK(map.values[1 * 3 + 2] == static_cast<float>(kept->count(2, 1)));
    const Table table = table_of(sample.reader(), "budgets", options);
    REQUIRE(table.rows.size() == 12);
    CHECK(whole(table.rows[0].cells[5]) == 48);
    CHECK(whole(table.rows[11].cells[5]) == static_cast<int64_t>(kept->count(2, 1)));
}

TEST_CASE("cost: any two columns of the table of runs can be drawn") {
    const SampleTrace sample;
    FigureOptions options;
    const Figure figure = made(sample.reader(), "cost", options);
    size_t n_points = 0;
    for (const Shape& shape : figure.panels.at(0).shapes) n_points += std::holds_alternative<Scatter>(shape);
    CHECK(n_points == 5);
    CHECK(figure.panels.at(0).x.title == "Coverage");
    options.columns = {"budget", "agreement"};
    options.runs = {"snapkv"};
    const Table table = table_of(sample.reader(), "cost", options);
    REQUIRE(table.rows.size() == 2);
    CHECK(real(table.rows[1].cells[2]) == 24);
    CHECK(real(table.rows[1].cells[3]) == Approx(5.0 / 6));
    options.columns = {"budget", "label"};
    CHECK_THROWS_WITH(table_of(sample.reader(), "cost", options), Contains("'label'") && Contains("kl_mean"));
    options.columns = {"budget"};
    CHECK_THROWS_WITH(table_of(sample.reader(), "cost", options), Contains("two columns"));
    options.columns = {"budget", "peak_bytes"};
    CHECK_THROWS_AS(made(sample.reader(), "cost", options), NothingToShow);
    options.runs = {};  // one of the runs has the number
    CHECK_THAT(made(sample.reader(), "cost", options).caption, Contains("a number is missing: snapkv 16"));
}

TEST_CASE("cost: a policy's line joins its budgets in ascending order, whatever the order of the runs") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write_runs(folder / "t.h5", {{"snapkv", 24}, {"h2o", 8}, {"snapkv", 16}, {"snapkv", 32}});
    const trace::Reader reader(folder / "t.h5");
    FigureOptions options;
    options.columns = {"budget", "agreement"};
    std::vector<std::vector<double>> lines;
    const Figure figure = made(reader, "cost", options);
    for (const Shape& shape : figure.panels.at(0).shapes)
        if (const auto* line = std::get_if<Line>(&shape)) lines.push_back(line->x);
    CHECK(lines == std::vector<std::vector<double>>{{16, 24, 32}});
}

TEST_CASE("cost: axes begin at zero unless more than half of them would be empty") {
    const SampleTrace sample;
    FigureOptions options;
    options.columns = {"budget", "agreement"};
    options.runs = {"snapkv"};  // budgets 16 and 24
    const Panel far = made(sample.reader(), "cost", options).panels.at(0);
    CHECK(far.x.min > 15);
    CHECK(far.x.min < 16);
    CHECK(far.x.max > 24);
    options.runs = {"snapkv 24", "full"};  // 24 and 48: zero is as near as they are to each other
    const Panel near = made(sample.reader(), "cost", options).panels.at(0);
    CHECK(near.x.min == 0);
    options.runs = {"snapkv 24"};
    const Panel one = made(sample.reader(), "cost", options).panels.at(0);
    CHECK(one.x.min < 24);
    CHECK(one.x.max > 24);
}

TEST_CASE("cost: a single value has an axis around it in its order of magnitude that does not cross zero") {
    for (const double value : {4.6e-4, 0.5, -3e-5, 7e9}) {
        CAPTURE(value);
        for (const double apart : {0.0, 1e-7}) {
            const trace::sample::TemporaryFolder folder;
            trace::sample::Options sizes;
            trace::PromptRecord prompt = trace::sample::prompt(sizes);
            auto runs = trace::sample::runs(sizes, prompt);
            trace::Writer writer(folder / "t.h5", trace::sample::recipe, {.force = true, .generator = "figures_test"});
            writer.write_model(trace::sample::model(sizes));
            writer.write_prompt(0, prompt);
            for (int j : {1, 2}) {
                trace::RunRecord& run = runs[static_cast<size_t>(j)];
                run.select_s = value * (1 + apart * j);
                writer.write_run(0, j - 1, run);
            }
            writer.finish();
            FigureOptions options;
            options.columns = {"budget", "select_s"};
            const trace::Reader reader(folder / "t.h5");
            const Axis y = made(reader, "cost", options).panels.at(0).y;
            CHECK(y.min < value);
            CHECK(y.max > value);
            CHECK(y.max - y.min == Approx(0.2 * std::abs(value)).epsilon(0.01));
        }
    }
}

TEST_CASE("KL per step: the stored curves, and the agreement below") {
    const SampleTrace sample;
    FigureOptions options;
    options.runs = {"snapkv 24"};
    const auto stored = sample.reader().read<float>(Place::of_run(0, 2), schema::run::step_kl);
    const Figure figure = made(sample.reader(), "step-kl", options);
    CHECK(layer_of<Line>(figure, 0).y.at(3) == static_cast<double>(stored[3]));
    CHECK(layer_of<Categories>(figure, 1).ids == std::vector<uint8_t>{0, 0, 0, 0, 0, 1});
    CHECK(layer_of<Line>(figure, 0).style.marker == Marker::none);
    CHECK(figure.legend.at(0).style.marker == Marker::none);  // the legend shows the drawn style
    const Table table = table_of(sample.reader(), "step-kl", options);
    REQUIRE(table.rows.size() == stored.size());
    CHECK(whole(table.rows.back().cells[4]) == 0);
    options.source = "map";
    const Figure map = made(sample.reader(), "step-kl", options);
    CHECK(layer_of<HeatMap>(map, 0).values == stored);
    CHECK(map.color_scales.at(0).max == static_cast<double>(*std::max_element(stored.begin(), stored.end())));
    options.runs = {"full"};
    options.source = "logarithmic";
    CHECK(layer_of<Line>(made(sample.reader(), "step-kl", options), 0).y.at(0) > 0);  // zero has no logarithm
}

TEST_CASE("KL per step omits runs that were not compared, and names them") {
    const trace::sample::TemporaryFolder folder;
    const trace::sample::Options sample;
    const auto prompt = trace::sample::prompt(sample);
    {
        trace::Writer writer(folder / "t.h5", trace::sample::recipe, {.generator = "sample"});
        writer.write_model(trace::sample::model());
        writer.write_prompt(0, prompt);
        writer.write_run(0, 0, trace::sample::selecting_run(sample, prompt, "snapkv", 16));
        trace::RunRecord other = trace::sample::selecting_run(sample, prompt, "snapkv", 24);
        other.step_kl.clear();
        other.step_agreement.clear();
        other.output_ids.clear();
        other.output_error.clear();
        writer.write_run(0, 1, other);
    }
    const trace::Reader reader(folder / "t.h5.part");
    CHECK_THAT(made(reader, "step-kl", {}).caption, Contains("not compared: snapkv 24"));
    FigureOptions options;
    options.runs = {"1"};
    CHECK_THROWS_AS(made(reader, "step-kl", options), NothingToShow);
    CHECK_THROWS_AS(made(reader, "cost", options), NothingToShow);
    for (const char* name : {"retention", "coverage", "budgets"}) CHECK_NOTHROW(made(reader, name, options));
}

TEST_CASE("difference: A minus B in the order in which they are named") {
    const SampleTrace sample;
    FigureOptions options;
    options.runs = {"snapkv 24", "snapkv 16"};
    const Figure figure = made(sample.reader(), "difference", options);
    const HeatMap& map = layer_of<HeatMap>(figure, 0);
    REQUIRE(map.values.size() == 3 * 48);
    for (uint32_t token = 0; token < 48; ++token) {
        CHECK(map.values[48 + token] == static_cast<float>(heads_keeping(sample.reader(), 2, 1, token) -
                                                           heads_keeping(sample.reader(), 1, 1, token)));
    }
    CHECK(map.reduction == Reduction::magnitude);
    CHECK(figure.color_scales.at(0).min == -2);
    CHECK(figure.color_scales.at(0).max == 2);
    CHECK(figure.panels.front().note.starts_with("same entries "));  // the term of the caption
    CHECK_THAT(figure.caption, Contains("Same entries: "));

    options.source = "classes";
    const auto in_a = tokens_of(sample.reader(), 2, 0), in_b = tokens_of(sample.reader(), 1, 0);
    const Figure by_class = made(sample.reader(), "difference", options);
    const Categories& classes = layer_of<Categories>(by_class, 0);
    for (uint32_t token = 0; token < 48; ++token) {
        const bool a = in_a.contains(token), b = in_b.contains(token);
        const uint8_t expected = a && b ? 0 : a ? 1 : b ? 2 : Categories::none;
        CHECK(classes.ids[token] == expected);
    }
    CHECK(classes.classes.at(1).label == "only A");
    const Table table = table_of(sample.reader(), "difference", options);
    const auto none = std::count(classes.ids.begin(), classes.ids.end(), Categories::none);
    CHECK(table.rows.size() == classes.ids.size() - static_cast<size_t>(none));

    options.runs = {"snapkv"};
    CHECK_NOTHROW(made(sample.reader(), "difference", options));
    options.runs = {"snapkv", "aperturekv"};
    CHECK_THROWS_WITH(made(sample.reader(), "difference", options), Contains("two runs") && Contains("3"));
}

TEST_CASE("prompt: the background of each token shows how many layers or heads keep it") {
    const SampleTrace sample;
    const trace::Reader& reader = sample.reader();
    FigureOptions options;
    options.runs = {"1"};
    const auto of_heads = [&](uint32_t token) {
        int heads = 0;
        for (size_t layer = 0; layer < 3; ++layer) heads += heads_keeping(reader, 1, layer, token);
        return heads;
    };
    const auto of_layers = [&](uint32_t token) {
        int layers = 0;
        for (size_t layer = 0; layer < 3; ++layer) layers += heads_keeping(reader, 1, layer, token) > 0;
        return layers;
    };
    const Table table = table_of(reader, "prompt", options);
    const auto texts = reader.token_text(0);
    REQUIRE(table.rows.size() == 48);
    for (size_t token = 0; token < table.rows.size(); ++token) {
        CHECK(whole(cell(table, token, "run")) == 1);
        CHECK(whole(cell(table, token, "token")) == static_cast<int64_t>(token));
        CHECK(std::get<kvscope::SharedText>(cell(table, token, "text")).string() == texts[token]);
        CHECK(whole(cell(table, token, "layers")) == of_layers(static_cast<uint32_t>(token)));
        CHECK(whole(cell(table, token, "heads")) == of_heads(static_cast<uint32_t>(token)));
    }
    for (const bool by_heads : {false, true}) {
        options.source = by_heads ? "heads" : "layers";
        const Figure figure = made(reader, "prompt", options);
        const HeatMap& map = layer_of<HeatMap>(figure, 0);
        std::string text;
        for (size_t i = 1; i < figure.panels[0].shapes.size(); ++i) {
            const auto& label = layer_of<TextLabel>(figure, 0, i);
            text += label.text;
            const auto cell = static_cast<size_t>(label.x);
            const auto line = static_cast<size_t>(label.y);
            REQUIRE(line < map.rows);
            CHECK(label.monospace);
            CHECK(map.values[line * map.columns + cell] >= 0);
        }
        std::string all;
        for (const auto& piece : texts) all += piece;
        std::erase(all, '\n');
        CHECK(text == all);
    }
    options.source = "tokens";
    CHECK_THROWS_WITH(made(reader, "prompt", options), Contains("layers, heads"));
}

/// Returns a trace of the full run alone, whose prompt has these tokens.
struct SaidTrace {
    trace::sample::TemporaryFolder folder;
    trace::Reader reader;

    explicit SaidTrace(std::vector<std::string> tokens) : reader(written(folder / "t.h5", std::move(tokens))) {}

 private:
    static std::filesystem::path written(const std::filesystem::path& path, std::vector<std::string> tokens) {
        trace::sample::Options options;
        options.n_tokens = static_cast<int>(tokens.size());
        auto prompt = trace::sample::prompt(options, 0);
        prompt.token_text = std::move(tokens);
        trace::Writer writer(path, trace::sample::recipe, {.force = true, .generator = "sample"});
        writer.write_model(trace::sample::model(options));
        writer.write_prompt(0, prompt);
        writer.write_run(0, 0, trace::sample::full_run(options, prompt));
        writer.finish();
        return path;
    }
};

TEST_CASE("prompt: a character that several tokens share is in the first token, in every script") {
    const SaidTrace said(
        {"f", "⟨C3⟩", "⟨BC⟩r", " ⟨E6⟩⟨97⟩", "⟨A5⟩", "本", "⟨F0⟩", "⟨9F⟩", "⟨98⟩", "⟨80⟩", "x⟨E2⟩", "y"});
    const trace::Reader& reader = said.reader;
    const Figure figure = made(reader, "prompt", {});
    std::vector<std::string> texts;
    for (const Shape& shape : figure.panels.at(0).shapes)
        if (const auto* label = std::get_if<TextLabel>(&shape)) texts.push_back(label->text);
    CHECK(texts == std::vector<std::string>{"f", "ü", "‿r", " 日", "‿", "本", "😀", "‿", "‿", "‿", "x⟨E2⟩", "y"});
    CHECK_THAT(figure.caption, Contains("‿"));
    // The table has each token unchanged.
    CHECK(std::get<kvscope::SharedText>(cell(table_of(reader, "prompt", {}), 1, "text")).string() == "⟨C3⟩");
}

TEST_CASE("prompt: letters that join across tokens are one label, with one color per token") {
    const SaidTrace said({"say", " مر", "⟨D8⟩", "⟨AD⟩", "با", " to", " all", " of", " you", " who", " are", " here"});
    const trace::Reader& reader = said.reader;
    const Figure figure = made(reader, "prompt", {});
    std::vector<TextLabel> labels;
    for (const Shape& shape : figure.panels.at(0).shapes)
        if (const auto* label = std::get_if<TextLabel>(&shape)) labels.push_back(*label);
    REQUIRE(labels.size() == 9);
    const TextLabel& word = labels[1];
    CHECK(word.text == " مرحبا");
    CHECK(word.is_right_to_left);
    CHECK(word.subject.token == 1);
    std::vector<size_t> ends;
    for (const auto& ink : word.inks) ends.push_back(ink.end);
    CHECK(ends == std::vector<size_t>{5, 7, 7, 11});  // the first of two tokens has all of a letter that they share
    CHECK(word.width == 3 + 1 + 1 + 2);
    CHECK(word.x == 3 + word.width / 2);
    CHECK(labels[2].x == 3 + word.width + 1.5);
    CHECK(labels[0].inks.empty());
    CHECK(figure.caption.find("‿") == std::string::npos);
}

TEST_CASE("prompt: a line is numbered by its first token, in either reading direction") {
    const SaidTrace said(std::vector<std::string>(60, " שלום"));
    const trace::Reader& reader = said.reader;
    FigureOptions options;
    options.width_mm = 57;  // 28 cells: five words per line
    const Figure figure = made(reader, "prompt", options);
    std::vector<std::string> numbers;
    for (const auto& tick : figure.panels.at(0).y.ticks) numbers.push_back(tick.label);
    CHECK(numbers == std::vector<std::string>{"0", "25", "50"});
}

TEST_CASE("retention, difference and prompt count a token in a merged entry of n as 1/n") {
    const SampleTrace sample;
    const trace::Reader& reader = sample.reader();
    constexpr int merging = 4;
    const auto kept = reader.kept(0, merging);
    REQUIRE(kept->merges());
    const auto entries_of = [&](size_t layer, uint32_t token) {
        double sum = 0;
        for (size_t row = 0; row < kept->n_rows; ++row) {
            const auto fate = kept->fate(layer, row, token);
            if (fate.is_held()) sum += 1.0 / fate.n_tokens;
        }
        return sum;
    };
    FigureOptions options;
    options.runs = {1, merging};
    options.layers = {2};
    const Figure retention = made(reader, "retention", options);
    REQUIRE(retention.color_scales.size() == 2);
    CHECK(retention.color_scales[0].whole_numbers);  // the scale of the other run counts heads
    CHECK(layer_of<HeatMap>(retention, 0).color_scale == 0);
    CHECK(layer_of<HeatMap>(retention, 1).color_scale == 1);
    const ColorScale& scale = retention.color_scales[1];
    CHECK(scale.scale == Scale::logarithmic);
    CHECK_FALSE(scale.whole_numbers);
    CHECK_THAT(scale.title, Contains("1/n if n tokens merge"));
    CHECK_THAT(retention.caption, Contains("sums to the number of entries in the cache"));
    CHECK_THAT(retention.panels.at(1).note, Contains("coverage 100.0 %, 4.0 tokens per entry"));
    CHECK_THAT(retention.panels.at(0).note, !Contains("entry"));
    const HeatMap& map = layer_of<HeatMap>(retention, 1);
    double sum = 0;
    for (uint32_t token = 0; token < 48; ++token) {
        sum += static_cast<double>(map.values.at(token));
        CHECK(map.values.at(token) == static_cast<float>(entries_of(2, token)));
        CHECK(map.values.at(token) >= static_cast<float>(scale.min));  // lower values are drawn as dropped
    }
    CHECK(sum == Approx(static_cast<double>(kept->count(2, 0) + kept->count(2, 1))).epsilon(1e-6));
    for (const Row& row : table_of(reader, "retention", options).rows) {
        if (whole(row.cells[0]) == merging) {
            CHECK(whole(row.cells[4]) == 2);
            CHECK(real(row.cells[6]) == entries_of(2, static_cast<uint32_t>(whole(row.cells[3]))));
        } else {
            CHECK(real(row.cells[6]) == static_cast<double>(whole(row.cells[4])));
        }
    }
    options.runs = {1};
    const Figure plain = made(reader, "retention", options);
    CHECK(plain.color_scales.at(0).whole_numbers);
    CHECK(plain.color_scales.size() == 1);
    options.runs = {merging};
    const Figure merged = made(reader, "retention", options);
    REQUIRE(merged.color_scales.size() == 1);
    CHECK(merged.color_scales[0].scale == Scale::logarithmic);
    const Figure joined =
        joined_figure({{plain, ""}, {merged, ""}}, std::vector<TracePart>{{&reader, {}, "a"}, {&reader, {}, "b"}});
    REQUIRE(joined.color_scales.size() == 2);
    CHECK(layer_of<HeatMap>(joined, 0).color_scale == 0);
    CHECK(layer_of<HeatMap>(joined, 1).color_scale == 1);

    options.runs = {merging, 1};
    const Table difference = table_of(reader, "difference", options);
    const Figure drawn = made(reader, "difference", options);
    const HeatMap& both = layer_of<HeatMap>(drawn, 0);
    for (const Row& row : difference.rows) {
        const auto token = static_cast<uint32_t>(whole(row.cells[3]));
        const double expected = entries_of(2, token) - heads_keeping(reader, 1, 2, token);
        CHECK(real(row.cells[6]) == entries_of(2, token));
        CHECK(real(row.cells[8]) == expected);
        CHECK(both.values.at(token) == static_cast<float>(expected));
    }
    options.layers.clear();
    options.source = "classes";
    for (const Row& row : table_of(reader, "difference", options).rows) CHECK(whole(row.cells[4]) == 2);

    options.source = "heads";
    options.runs = {merging};
    const Table prompt = table_of(reader, "prompt", options);
    REQUIRE(prompt.rows.size() == 48);
    for (uint32_t token = 0; token < 48; ++token)
        CHECK(real(prompt.rows[token].cells[6]) ==
              Approx(entries_of(0, token) + entries_of(1, token) + entries_of(2, token)).epsilon(1e-12));
    CHECK(made(reader, "prompt", options).color_scales.at(0).min < 1);
}

TEST_CASE("maps of two traces use the scale of their kind: whole numbers or parts of entries") {
    const SampleTrace sample;
    TracePart a{&sample.reader(), {}, "a"}, b{&sample.reader(), {}, "b"};
    a.options.runs = {1};
    b.options.runs = {4};
    const Figure both = make_figure(figure_definition("retention"), std::array{a, b});
    REQUIRE(both.color_scales.size() == 2);
    CHECK(both.color_scales[0].whole_numbers);
    CHECK(layer_of<HeatMap>(both, 0).color_scale == 0);
    const ColorScale& parts = both.color_scales[layer_of<HeatMap>(both, 1).color_scale];
    CHECK(parts.scale == Scale::logarithmic);
    CHECK_FALSE(parts.whole_numbers);
    CHECK(parts.min < 1);
}
