#include <fmt/format.h>
#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "analysis/drawing/policy_color.h"
#include "analysis/runs/run_style.h"
#include "app/figures/figure_format.h"
#include "app/gui/figure/figure_hit.h"
#include "app/gui/figure/figure_job.h"
#include "app/gui/figure/figure_preview.h"
#include "app/gui/figure/figure_shapes.h"
#include "policies/registry/registry.h"
#include "tests/analysis/color_distance.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui::testing {
namespace {

namespace fs = std::filesystem;

/// A session on the sample trace without a window.
struct Opened {
    trace::sample::TemporaryFolder folder;
    Tasks tasks{[] {}};
    Session session{tasks};
    Document* document = nullptr;

    Opened() {
        trace::sample::write(folder / "sample.h5");
        document = &session.open(folder / "sample.h5");
    }

    std::shared_ptr<const MadeFigure> made(const FigureRequest& request) {
        const TaskSlot<MadeFigure> slot;
        request_figure(session, slot, request);
        tasks.wait();
        const auto answer = request_figure(session, slot, request);
        INFO(answer.error);
        REQUIRE(answer.value);
        CHECK(answer.current);
        return answer.value;
    }
};

uint32_t big_endian(const std::string& bytes, size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes.at(at + i));
    return value;
}

}  // namespace

TEST_CASE("each run's curve is visible in light and dark themes with two traces and many policies") {
    std::vector<trace::RunAttributes> runs;
    for (const char* policy : {"full", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}) {
        trace::RunAttributes run;
        run.policy = run.label = policy;
        runs.push_back(run);
    }
    const auto luminance = [](const ImVec4& of) { return 0.2126f * of.x + 0.7152f * of.y + 0.0722f * of.z; };
    Theme dark;
    dark.brightness = Brightness::dark;
    dark.ground = {0.08f, 0.09f, 0.1f, 1};
    dark.ink = {0.87f, 0.89f, 0.92f, 1};
    for (const auto& of_trace : analysis::run_styles_of_traces({runs, runs})) {
        for (size_t i = 0; i < of_trace.size(); ++i) {
            CAPTURE(i);
            CHECK(luminance(adapt_line_color_to_theme(of_trace[i].color, dark)) > luminance(dark.ground) + 0.18f);
        }
    }
}

namespace {

using analysis::test::Eyes;
using analysis::test::Triple;

Theme dark_theme() {
    Theme theme;
    theme.brightness = Brightness::dark;
    theme.ground = {0x14 / 255.0f, 0x16 / 255.0f, 0x1a / 255.0f, 1};
    theme.ink = {0xdf / 255.0f, 0xe3 / 255.0f, 0xea / 255.0f, 1};
    return theme;
}

Triple on_dark(const analysis::MarkColor& color) {
    const ImVec4 seen = adapt_line_color_to_theme(color, dark_theme());
    return {seen.x, seen.y, seen.z};
}

/// Contrast of two colors as defined by WCAG.
double contrast(const Triple& one, const Triple& two) {
    const auto light = [](const Triple& color) {
        const Triple of = analysis::test::linear(color);
        return 0.2126 * of[0] + 0.7152 * of[1] + 0.0722 * of[2] + 0.05;
    };
    return std::max(light(one), light(two)) / std::min(light(one), light(two));
}

/// Checks on a dark background that the colors of these policies and of the full cache can be distinguished.
void check_told_apart_on_dark(const std::vector<const char*>& policies, double least,
                              double least_without_red_and_green) {
    for (size_t i = 0; i < policies.size(); ++i) {
        const Triple color = on_dark(analysis::policy_color(policies[i]));
        for (size_t j = 0; j <= i; ++j) {
            const Triple other = on_dark(j == i ? analysis::MarkColor() : analysis::policy_color(policies[j]));
            CAPTURE(policies[i], j == i ? "full" : policies[j]);
            CHECK(color_distance(color, other, Eyes::usual) >= least);
            CHECK(color_distance(color, other, Eyes::deuteranope) >= least_without_red_and_green);
            CHECK(color_distance(color, other, Eyes::protanope) >= least_without_red_and_green);
        }
    }
}

}  // namespace

TEST_CASE("policies in one plot are also distinct on the dark background") {
    check_told_apart_on_dark({"streaming-llm", "h2o", "snapkv", "pyramidkv", "ada-snapkv", "aperturekv", "k-vec",
                              "dapq", "laq", "gemfilter", "random", "oracle"},
                             20, 11.4);
    check_told_apart_on_dark({"snapkv", "h2o", "random", "streaming-llm", "think", "kvslimmer", "asymkv", "echokv",
                              "echokv-hybrid", "palu", "commonkv", "minicache"},
                             14, 10);
}

TEST_CASE("every policy's color and shades are visible on the dark background and distinct from other policies") {
    const Theme dark = dark_theme();
    const Triple ground{dark.ground.x, dark.ground.y, dark.ground.z};
    std::vector<std::string> named;  // other policies, such as new ones, only have lightened colors
    for (const auto& policy : policies::definitions())
        if (analysis::policy_color(policy.name).on_dark) named.push_back(policy.name);
    REQUIRE(named.size() >= 27);
    for (const std::string& policy : named) {
        const analysis::MarkColor own = analysis::policy_color(policy);
        const analysis::MarkColor paler = analysis::policy_color(policy, analysis::Shade::paler);
        const analysis::MarkColor darker = analysis::policy_color(policy, analysis::Shade::darker);
        CAPTURE(policy);
        CHECK(contrast(on_dark(own), ground) >= 3);
        CHECK(color_distance(on_dark(paler), on_dark(darker), Eyes::usual) >= 7.5);
        for (const analysis::MarkColor& shade : {paler, darker}) {
            CAPTURE(int{shade.r}, int{shade.g}, int{shade.b});
            const Triple seen = on_dark(shade);
            CHECK(contrast(seen, ground) >= 2.2);
            CHECK(color_distance(seen, on_dark(own), Eyes::usual) >= 7.5);
            CHECK(color_distance(seen, on_dark({}), Eyes::usual) >= 7.5);
            for (const std::string& other : named) {
                if (other == policy) continue;
                CAPTURE(other);
                CHECK(color_distance(seen, on_dark(analysis::policy_color(other)), Eyes::usual) >= 7.5);
            }
        }
    }
}

TEST_CASE("a figure in the window equals the exported figure, with its maps ready for the GPU") {
    Opened opened;
    const FigureRequest request = figure_request_for_shown_runs(opened.session, "jsd", false);
    const auto made = opened.made(request);
    REQUIRE(made->figure);
    const auto expected = analysis::figure_definition("jsd").make(*opened.document->reader(), request.options);
    REQUIRE(made->figure->figure.panels.size() == expected.panels.size());
    for (size_t i = 0; i < expected.panels.size(); ++i) {
        const auto& map = std::get<analysis::HeatMap>(expected.panels[i].shapes.front());
        const auto& pyramid = *made->figure->pyramids.at({i, 0});
        CHECK(pyramid.rows == map.rows);
        CHECK(pyramid.levels.front().values == map.values);
    }
}

TEST_CASE("figures that a trace cannot provide are known before drawing, and a long figure is previewed by page") {
    const trace::sample::TemporaryFolder folder;
    {
        trace::Writer writer(folder / "t.h5", trace::sample::recipe, {.generator = "sample"});
        writer.write_model(trace::sample::model());
        writer.write_prompt(0, trace::sample::prompt());
    }
    Tasks tasks{[] {}};
    Session session{tasks};
    session.open(folder / "t.h5.part");
    CHECK_NOTHROW(FigureJob(session, figure_request_for_shown_runs(session, "jsd", false)).exported().check());
    CHECK_THROWS_AS(FigureJob(session, figure_request_for_shown_runs(session, "retention", false)).exported().check(),
                    analysis::NothingToShow);

    trace::sample::Options long_one;
    long_one.n_tokens = 6000;
    long_one.n_layers = 1;
    trace::sample::write(folder / "long.h5", long_one);
    FigureRequest request = figure_request_for_shown_runs(session, "prompt", false);
    request.document = session.open(folder / "long.h5").id();
    const FigureJob job(session, request);
    const FigurePicture first = render_preview_page(job, 400, 400);
    CHECK(first.n_pages > 1);
    CHECK(first.page == 0);
    CHECK(first.height_mm < 240);
    const FigurePicture last = render_preview_page(job, 400, 400, 1000);
    CHECK(last.page + 1 == last.n_pages);
    CHECK(last.pixels != first.pixels);
}

TEST_CASE("a hidden run disappears from the figure, and a message names missing data") {
    Opened opened;
    const FigureRequest all = figure_request_for_shown_runs(opened.session, "coverage", true);
    REQUIRE(all.runs.size() > 1);
    const RunKey first{opened.document->id(), 0, all.runs.front()};
    opened.session.set_visible(first, false);
    const FigureRequest fewer = figure_request_for_shown_runs(opened.session, "coverage", true);
    CHECK(fewer.runs.size() + 1 == all.runs.size());
    CHECK(figure_change_stamp(opened.session, fewer) != figure_change_stamp(opened.session, all));

    FigureRequest impossible = figure_request_for_shown_runs(opened.session, "jsd", false);
    impossible.options.source = "scores";
    impossible.runs = {opened.document->id_of(0, 0)};  // the full cache has no scores
    const auto nothing = opened.made(impossible);
    CHECK_FALSE(nothing->figure);
    CHECK(nothing->nothing.find("JSD") != std::string::npos);
}

TEST_CASE("conversions between panel positions and data coordinates are inverse") {
    PlotFrame frame{{10, 20}, {210, 120}, {}, {}};
    frame.x_axis.reversed = GENERATE(false, true);
    frame.y_axis.reversed = frame.x_axis.reversed;
    frame.x_axis.min = 2;
    frame.x_axis.max = 6;
    frame.y_axis.scale = analysis::Scale::logarithmic;
    frame.y_axis.min = 1e-3;
    frame.y_axis.max = 10;
    CHECK(frame.x_of(2) == Approx(frame.x_axis.reversed ? 210 : 10));
    CHECK(frame.y_of(1e-3) == Approx(frame.y_axis.reversed ? 20 : 120));
    CHECK(frame.y_of(0.1) == Approx(70));  // half of four decades
    CHECK(frame.x_at(frame.x_of(3.7)) == Approx(3.7));
    CHECK(frame.y_at(frame.y_of(0.02)) == Approx(0.02).epsilon(1e-4));
}

TEST_CASE("the item under the mouse gives its layer, heads and run by number, wherever these are in the figure") {
    const Opened opened;
    FigureRequest request = figure_request_for_shown_runs(opened.session, "jsd", false, Traces::focused);
    request.options.layers = {2};
    request.options.source = "attention-by-similarity";
    PreparedFigure jsd = prepare_figure(FigureJob(opened.session, request).figure());
    jsd.runs = FigureJob(opened.session, request).runs();
    jsd.traces = FigureJob(opened.session, request).traces();
    const analysis::Panel& panel = jsd.figure.panels.front();
    const PlotFrame frame{{0, 0}, {400, 400}, panel.x, panel.y};
    FigureHit hit;
    hit.x = 3;
    hit.y = 1;
    find_hit(panel, frame, {frame.x_of(hit.x), frame.y_of(hit.y)}, hit);
    CHECK(hit.row == 1);
    CHECK(hit.subject.layer == 2);
    CHECK(hit.subject.head == panel.y.numbers.at(1));
    CHECK(hit.other.head == panel.x.numbers.at(3));
    const auto cursor = jsd.cursor_of(opened.session, hit.subject);
    REQUIRE(cursor);
    CHECK(cursor->run.document == opened.document->id());
    CHECK_FALSE(cursor->run.valid());
    CHECK(cursor->layer == 2);
    CHECK(cursor->query_head == hit.subject.head);
    CHECK(cursor->kv_head == hit.subject.head / 2);

    FigureRequest curves = figure_request_for_shown_runs(opened.session, "coverage", true, Traces::focused);
    curves.options.layers = {0, 2};
    const FigureJob job(opened.session, curves);
    PreparedFigure coverage = prepare_figure(job.figure());
    coverage.runs = job.runs();
    coverage.traces = job.traces();
    const analysis::Panel& layers = coverage.figure.panels.front();
    const PlotFrame wide{{0, 0}, {400, 400}, layers.x, layers.y};
    const auto& line = std::get<analysis::Line>(layers.shapes.at(1));
    FigureHit at_curve;
    at_curve.x = line.x.at(1);
    at_curve.y = line.y.at(1);
    find_hit(layers, wide, {wide.x_of(at_curve.x), wide.y_of(at_curve.y)}, at_curve);
    CHECK(at_curve.subject.layer == 2);
    const auto at_run = coverage.cursor_of(opened.session, at_curve.subject);
    REQUIRE(at_run);
    CHECK(at_run->run == coverage.run_of(0, static_cast<size_t>(at_curve.shape)));
    CHECK(at_run->run.valid());

    at_curve = {};
    at_curve.x = 0.2;
    at_curve.y = layers.y.max;
    find_hit(layers, wide, {wide.x_of(at_curve.x), -400}, at_curve);
    CHECK(at_curve.shape == -1);
    CHECK(at_curve.subject.layer == 0);
    CHECK(at_curve.subject.run == -1);
}

TEST_CASE("the report's preview has the size of the exported picture") {
    Opened opened;
    const FigureJob job(opened.session, figure_request_for_shown_runs(opened.session, "coverage", true));
    const FigurePicture picture = render_preview_page(job, 100'000, 100'000);
    figures::ExportOptions print;
    print.dpi = 300;
    const std::string png = figures::render_png(job.figure(), print);
    CHECK(static_cast<uint32_t>(picture.width) == big_endian(png, 16));
    CHECK(static_cast<uint32_t>(picture.height) == big_endian(png, 20));
    CHECK(picture.pixels.size() == static_cast<size_t>(picture.width) * static_cast<size_t>(picture.height));
    const FigurePicture small = render_preview_page(job, 320, 200);
    CHECK(small.width <= 320);
    CHECK(small.height <= 200);
}

TEST_CASE("a small map of head divergence selects its layer") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "sample.h5");
    AppOptions options;
    options.traces = {folder / "sample.h5"};
    options.view = "head_divergence";
    options.layout = "explore";
    options.remember = false;
    DrivenApp driven(options);
    driven.settle();
    driven.drive([](ImGuiTestContext& context) { context.ItemClick("**/panel 1"); });
    CHECK(driven.session().cursor().layer == 1);
}

TEST_CASE("every figure view shows the sample trace without an error") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "sample.h5");
    const auto* const view = GENERATE("coverage", "budgets", "merging", "reconstruction", "channels", "spectrum",
                                      "query_similarity", "head_divergence", "cost", "scatter", "report");
    CAPTURE(view);
    AppOptions options;
    options.traces = {folder / "sample.h5"};
    options.view = view;
    options.layout = "explore";
    options.remember = false;
    DrivenApp driven(options);
    driven.settle();
    REQUIRE(driven.app().views().size() == 1);
    const View& shown = *driven.app().views().front()->view;
    if (const auto request = shown.figure(driven.session())) {
        const auto& definition = analysis::figure_definition(request->figure);
        CHECK_NOTHROW(definition.numbers(*driven.session().document(request->document)->reader(), request->options));
    }
    CHECK(driven.app().notices().empty());
}

TEST_CASE("the view Spectrum shows every source, and the mouse finds layers and heads in each") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "sample.h5");
    const std::string source = GENERATE("eigenvalues", "cumulative", "adjacent", "contribution", "layer-similarity",
                                        "head-similarity", "alignment");
    CAPTURE(source);
    AppOptions options;
    options.traces = {folder / "sample.h5"};
    options.view = "spectrum";
    options.remember = false;
    DrivenApp driven(options);
    driven.settle();
    View& view = *driven.app().views().front()->view;
    view.load({{"source", source}, {"all_layers", true}});
    driven.settle();
    const auto request = view.figure(driven.session());
    REQUIRE(request);
    CHECK(request->options.source == source);
    const auto& definition = analysis::figure_definition(request->figure);
    const auto& reader = *driven.session().document(request->document)->reader();
    CHECK_NOTHROW(definition.numbers(reader, request->options));
    CHECK(!definition.make(reader, request->options).panels.empty());
    bool found = false;
    driven.drive([&](ImGuiTestContext& c) {
        ImRect plot;
        for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
            if (window->WasActive && std::string_view(window->Name).find("/panels_") != std::string_view::npos)
                plot = window->InnerRect;
        constexpr int n_columns = 40, n_rows = 16;
        for (int i = 0; i < n_columns * n_rows && !found; ++i) {
            const int column = i % n_columns, row = i / n_columns;
            c.MouseMoveToPos({plot.Min.x + (static_cast<float>(column) + 0.4f) / n_columns * plot.GetWidth(),
                              plot.Min.y + (static_cast<float>(row) + 0.4f) / n_rows * plot.GetHeight()});
            c.Yield();
            found = driven.session().hover().layer >= 0;
        }
    });
    CHECK(found);
    CHECK(driven.app().notices().empty());
}

TEST_CASE("keys and values of a run are side by side, or one below the other in a single column") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    AppOptions options = explore(sample);
    options.view = "reconstruction";
    DrivenApp driven(options);
    std::set<bool> are_beside;
    // From four columns to one, without three.
    for (const float scale : {1.0f, 1.2f, 1.4f, 1.7f, 2.2f, 3.5f}) {
        CAPTURE(scale);
        driven.app().set_scale(scale);
        driven.settle();
        std::vector<ImRect> panels;
        driven.drive([&](ImGuiTestContext& c) {
            for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
                if (window->WasActive && std::string_view(window->Name).find("/panels_") != std::string_view::npos)
                    c.SetRef(window->ID);
            }
            for (int i = 0; c.ItemExists(fmt::format("##panel {}", i).c_str()); ++i)
                panels.push_back(c.ItemInfo(fmt::format("##panel {}", i).c_str()).RectFull);
        });
        REQUIRE(panels.size() >= 2);
        for (size_t keys = 0; keys + 1 < panels.size(); keys += 2) {
            const bool is_row = panels[keys].Min.y == panels[keys + 1].Min.y;
            CHECK((is_row || panels[keys].Min.x == panels[keys + 1].Min.x));
            are_beside.insert(is_row);
        }
    }
    CHECK(are_beside.size() == 2);
}

TEST_CASE("after scrolling, the wheel zooms maps, and keys or the wheel beside the maps scroll") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    trace::sample::TemporaryFolder folder;
    trace::sample::Options sample;
    sample.n_layers = 40;
    trace::sample::write(folder / "sample.h5", sample);
    AppOptions options;
    options.traces = {folder / "sample.h5"};
    options.view = "budgets";
    DrivenApp driven(options);
    driven.app().set_scale(4);  // one or two maps are visible
    driven.settle();
    const auto panels = [] {
        for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
            if (window->WasActive && std::string_view(window->Name).find("/panels_") != std::string_view::npos)
                return window;
        }
        return static_cast<const ImGuiWindow*>(nullptr);
    };
    REQUIRE(panels());
    REQUIRE(panels()->ScrollMax.y > 0);
    ImRect map;
    const auto layer_at = [&](ImGuiTestContext& c, float share) {
        c.MouseMoveToPos({map.Min.x + share * map.GetWidth(), map.GetCenter().y});
        c.Yield(2);
        return driven.session().hover().layer;
    };
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef(panels()->ID);
        map = c.ItemInfo("##panel 0").RectFull;
        const int before = layer_at(c, 0.2f);
        const int there = layer_at(c, 0.8f);
        c.MouseWheelY(4);
        c.Yield(2);
        CHECK(panels()->Scroll.y == 0);
        CHECK(layer_at(c, 0.8f) == there);
        CHECK(layer_at(c, 0.2f) > before);
        c.KeyPress(ImGuiKey_F);
        c.Yield(2);
        CHECK(layer_at(c, 0.2f) == before);
        c.MouseMoveToPos({map.GetCenter().x, map.Min.y - 4});  // the map's title
        c.MouseWheelY(-1);
        c.Yield(2);
        CHECK(panels()->Scroll.y > 0);
        c.KeyPress(ImGuiKey_PageUp);
        c.Yield(2);
        CHECK(panels()->Scroll.y == 0);
    });
    Session& session = driven.session();
    session.selection.select_run(session.visible_runs(true).back());
    driven.settle();
    CHECK(panels()->Scroll.y > 0);
}

TEST_CASE("the difference's bars react to clicks, drags, zooming and keys") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    trace::sample::TemporaryFolder folder;
    trace::sample::Options sample;
    sample.n_layers = 10;
    trace::sample::write(folder / "sample.h5", sample);
    AppOptions options;
    options.traces = {folder / "sample.h5"};
    options.view = "difference";
    DrivenApp driven(options);
    driven.settle();
    Session& session = driven.session();
    ImRect bars;
    const auto at = [&](double layer, float share) {
        return ImVec2{bars.Min.x + share * bars.GetWidth(),
                      bars.Min.y + static_cast<float>((layer + 0.5) / 10) * bars.GetHeight()};
    };
    int dragged_to = -1;
    driven.drive([&](ImGuiTestContext& c) {
        bars = c.ItemInfo("//difference-1/##difference overlap").RectFull;
        c.MouseMoveToPos(at(2, 0.5f));
        c.MouseDown();
        c.Yield(2);
        CHECK(session.cursor().layer == 2);
        c.MouseMoveToPos(at(6, 0.5f));
        dragged_to = session.cursor().layer;
        c.MouseUp();
        c.KeyPress(ImGuiKey_DownArrow);
        c.KeyPress(ImGuiKey_DownArrow);
        c.KeyPress(ImGuiKey_UpArrow);
        CHECK(session.cursor().layer == 7);
        c.KeyPress(ImGuiKey_End);
        CHECK(session.cursor().layer == 9);
        c.MouseMoveToPos(at(6, 0.02f));
    });
    CHECK(dragged_to == 6);
    const auto ink = [&] {  // pixels of the bars in the right two thirds
        const Screenshot shot = driven.picture();
        size_t n = 0;
        for (auto y = static_cast<size_t>(bars.Min.y); y < static_cast<size_t>(bars.Max.y); ++y) {
            for (auto x = static_cast<size_t>(at(0, 0.34f).x); x < static_cast<size_t>(bars.Max.x); ++x) {
                const uint8_t* pixel = shot.rgb.data() + 3 * (y * static_cast<size_t>(shot.width) + x);
                n += pixel[2] > 150 && pixel[2] > pixel[0] + 60;  // blue of the accent color
            }
        }
        return n;
    };
    const size_t before = ink();
    driven.drive([&](ImGuiTestContext& c) { c.MouseWheelY(5); });
    CHECK(ink() > before + 100);
    driven.drive([&](ImGuiTestContext& c) { c.KeyPress(ImGuiKey_F); });
    CHECK(ink() == before);
}

}  // namespace kvscope::gui::testing
