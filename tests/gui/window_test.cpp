#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <random>

#include "app/gui/drawing/heat_map.h"
#include "app/gui/figure/figure_preview.h"
#include "app/gui/layout/layouts.h"
#include "app/gui/session/annotations.h"
#include "app/gui/session/session_state.h"
#include "common/whole_file.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

namespace fs = std::filesystem;

#define NEEDS_DISPLAY() \
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run")

ImU32 pixel(const Screenshot& shot, float x, float y) {
    const size_t at = (static_cast<size_t>(y) * static_cast<size_t>(shot.width) + static_cast<size_t>(x)) * 3;
    return IM_COL32(shot.rgb[at], shot.rgb[at + 1], shot.rgb[at + 2], 255);
}

/// Draws a frame with only a map in a rectangle.
Screenshot picture_of(const HeatMap& map, ImVec2 min, ImVec2 max, const MapWindow& window, const MapColors& colors) {
    return test_window()->capture([&] {
        map.draw(ImGui::GetForegroundDrawList(), min, max, window, colors);
        return true;
    });
}

MapColors plain_colors() {
    MapColors colors;
    colors.min = 1;
    colors.max = 4;
    colors.ground_below_min = true;
    colors.ground = IM_COL32(10, 20, 30, 255);
    return colors;
}

}  // namespace

TEST_CASE("a map's cells have the colors of their values") {
    NEEDS_DISPLAY();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> values = {0, 1, 2, 3, 4, nan};
    const HeatMap map(make_pyramid(values, 2, 3, Reduce::maximum));
    const MapColors colors = plain_colors();
    const Screenshot shot = picture_of(map, {100, 100}, {400, 300}, {0, 3, 0, 2}, colors);
    for (int row = 0; row < 2; ++row) {
        for (int column = 0; column < 3; ++column) {
            CAPTURE(row, column);
            const float value = values[static_cast<size_t>(row * 3 + column)];
            const auto x = static_cast<float>(150 + 100 * column);
            const auto y = static_cast<float>(150 + 100 * row);
            CHECK(pixel(shot, x, y) == map_value_to_color(colors, value));
        }
    }
}

TEST_CASE("one kept token among 100,000 is visible at every zoom") {
    NEEDS_DISPLAY();
    constexpr size_t columns = 100'003;
    const auto place = GENERATE(size_t{0}, size_t{4095}, size_t{4096}, size_t{50'001}, columns - 1);
    std::vector<float> values(2 * columns, 0.0f);
    values[columns + place] = 4;
    const HeatMap map(make_pyramid(values, 2, columns, Reduce::maximum));
    const MapColors colors = plain_colors();
    for (const double share : {1.0, 0.3, 0.01}) {
        CAPTURE(place, share);
        const double width = static_cast<double>(columns) * share;
        const double left =
            std::clamp(static_cast<double>(place) - width / 2, 0.0, static_cast<double>(columns) - width);
        const Screenshot shot = picture_of(map, {50, 100}, {1250, 140}, {left, left + width, 0, 2}, colors);
        int seen_above = 0;
        int seen_below = 0;
        for (int x = 50; x < 1250; ++x) {
            seen_above += pixel(shot, static_cast<float>(x), 110) != colors.ground;
            seen_below += pixel(shot, static_cast<float>(x), 130) == map_value_to_color(colors, 4);
        }
        CHECK(seen_above == 0);
        CHECK(seen_below >= 1);
        CHECK(seen_below <= 3 + static_cast<int>(1200 / width));
    }
}

TEST_CASE("differences keep their sign when cells share a pixel") {
    NEEDS_DISPLAY();
    std::vector<float> values(5000, 0.0f);
    values[2500] = 1;
    values[2501] = -3;
    const HeatMap map(make_pyramid(values, 1, values.size(), Reduce::largest_magnitude));
    MapColors colors;
    colors.map = analysis::ColorMap::blue_white_red;
    colors.min = -3;
    colors.max = 3;
    const Screenshot shot = picture_of(map, {0, 0}, {100, 20}, {0, 5000, 0, 1}, colors);
    CHECK(pixel(shot, 50, 10) == map_value_to_color(colors, -3));
    CHECK(pixel(shot, 20, 10) == map_value_to_color(colors, 0));
}

TEST_CASE("a map removed during a frame is still drawn in that frame and in a preview") {
    NEEDS_DISPLAY();
    const MapColors colors = plain_colors();
    const bool is_copied = GENERATE(true, false);  // large maps are copied differently
    const float size = is_copied ? 600 : 30;
    FigurePicture red;
    red.width = red.height = 2;
    red.pixels.assign(4, 0xff0000);
    const Screenshot shot = test_window()->capture([&] {
        ImDrawList* list = ImGui::GetForegroundDrawList();
        const auto map = std::make_unique<HeatMap>(make_pyramid(std::vector<float>{1, 2, 3, 4}, 2, 2, Reduce::maximum));
        map->draw(list, {100, 100}, {100 + size, 100 + size}, {0, 2, 0, 2}, colors);
        PictureTexture preview;
        list->AddImage(preview.get(std::make_shared<const FigurePicture>(red)), {800, 100}, {900, 200});
        return true;
    });
    CHECK(pixel(shot, 100 + 0.75f * size, 100 + 0.25f * size) == map_value_to_color(colors, 2));
    CHECK(pixel(shot, 100 + 0.25f * size, 100 + 0.75f * size) == map_value_to_color(colors, 3));
    CHECK(pixel(shot, 850, 150) == IM_COL32(255, 0, 0, 255));
}

TEST_CASE("the start page has cards; the dialog opens a trace and reports a damaged one") {
    NEEDS_DISPLAY();
    const SampleTrace sample;
    const fs::path damaged = sample.folder / "damaged.h5";
    std::ofstream(damaged) << "no HDF5 at all";
    DrivenApp driven({});
    driven.drive([&](ImGuiTestContext& c) {
        c.ItemClick("//Start/**/##Open a trace");
        c.SetRef("//$FOCUSED");
        c.ItemInputValue("**/##path", damaged.c_str());
        c.Yield(3);
        IM_CHECK_EQ(driven.session().documents().size(), size_t{0});
        c.ItemClick("//Start/**/##Open a trace");
        c.SetRef("//$FOCUSED");
        c.ItemInputValue("**/##path", sample.path.c_str());
        c.Yield(3);
    });
    REQUIRE(driven.app().notices().size() == 1);
    CHECK(driven.app().notices()[0].find("damaged.h5") != std::string::npos);
    REQUIRE(driven.session().documents().size() == 1);
    CHECK(driven.session().documents()[0]->path() == sample.path);
    CHECK(driven.session().cursor().run.valid());
}

TEST_CASE("every view of every layout draws an open trace and an empty session") {
    NEEDS_DISPLAY();
    const SampleTrace sample;
    const bool open = GENERATE(true, false);
    AppOptions options;
    if (open) options.traces = {sample.path};
    DrivenApp driven(options);
    for (const Layout& layout : layouts()) {
        CAPTURE(layout.name, open);
        driven.app().apply_layout(layout.name);
        driven.settle();
        CHECK(driven.app().views().size() == layout.views.size());
    }
    for (const ViewKind& kind : view_kinds()) {
        CAPTURE(kind.name);
        const size_t before = driven.app().views().size();
        driven.app().open_view(kind);
        driven.settle();
        CHECK(driven.app().views().size() == before + 1);
    }
    CHECK(driven.app().notices().empty());
}

TEST_CASE("a click in the map selects run, layer and token; keys move the selection; Escape clears it") {
    NEEDS_DISPLAY();
    const SampleTrace sample;
    AppOptions options;
    options.traces = {sample.path};
    options.view = "retention";
    options.layout = "explore";
    DrivenApp driven(options);
    const auto n_tokens = driven.session().focus()->reader()->prompt(0).visible_tokens();
    const auto n_layers = driven.session().focus()->reader()->model().n_layers;
    driven.drive([&](ImGuiTestContext& c) {
        const ImGuiWindow* maps = c.WindowInfo("//retention-1/maps").Window;
        IM_CHECK(maps != nullptr);
        const ImVec2 at = maps->Rect().GetCenter();
        c.MouseMoveToPos({at.x, maps->Rect().Min.y + 60});
        c.Yield(2);
        IM_CHECK(driven.session().hover().has_tokens());
        c.MouseClick();
        c.Yield(2);
    });
    const Cursor clicked = driven.session().cursor();
    CHECK(clicked.first_token >= 0);
    CHECK(clicked.first_token < n_tokens);
    CHECK(clicked.layer >= 0);
    CHECK(clicked.layer < n_layers);
    driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(ImGuiKey_Period);
        c.KeyPress(clicked.layer == 0 ? ImGuiKey_RightBracket : ImGuiKey_LeftBracket);
    });
    CHECK(driven.session().cursor().first_token == clicked.first_token + 1);
    CHECK(std::abs(driven.session().cursor().layer - clicked.layer) == 1);
    driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_Z);
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_Z);
    });
    CHECK(driven.session().cursor() == clicked);
    driven.drive([&](ImGuiTestContext& c) { c.KeyPress(ImGuiKey_Escape); });
    CHECK(!driven.session().cursor().has_tokens());
    CHECK(driven.session().cursor().run == clicked.run);
}

TEST_CASE("the command palette finds and starts an action") {
    NEEDS_DISPLAY();
    const SampleTrace sample;
    AppOptions options;
    options.traces = {sample.path};
    options.layout = "explore";
    DrivenApp driven(options);
    driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
        c.Yield(2);
        c.KeyCharsReplaceEnter("layout compare");
        c.Yield(3);
    });
    const auto& views = driven.app().views();
    CHECK(views.size() == find_layout("compare")->views.size());
    CHECK(driven.app().actions().last() == "Compare");
}

TEST_CASE("the command palette ranks whole words before scattered letters") {
    NEEDS_DISPLAY();
    const SampleTrace sample;
    AppOptions options;
    options.traces = {sample.path};
    DrivenApp driven(options);
    driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
        c.Yield(2);
        c.KeyCharsReplaceEnter("runs");  // rather than "Go to run snapkv"
        c.Yield(3);
    });
    CHECK(driven.app().actions().last().find("uns") != std::string::npos);
}

TEST_CASE("Escape closes the command palette immediately") {
    NEEDS_DISPLAY();
    DrivenApp driven(AppOptions{});
    const auto is_open = [] {
        return ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
    };
    driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
        c.Yield(2);
        IM_CHECK(is_open());
        c.KeyPress(ImGuiKey_Escape);
        c.Yield(2);
        IM_CHECK(!is_open());
    });
}

TEST_CASE("number keys hide and show runs") {
    NEEDS_DISPLAY();
    const SampleTrace sample;
    AppOptions options;
    options.traces = {sample.path};
    DrivenApp driven(options);
    const auto runs = driven.session().all_runs();
    REQUIRE(runs.size() >= 2);
    driven.drive([&](ImGuiTestContext& c) { c.KeyPress(ImGuiKey_2); });
    CHECK(!driven.session().is_visible(runs[1]));
    driven.drive([&](ImGuiTestContext& c) { c.KeyPress(ImGuiKey_0); });
    CHECK(driven.session().is_visible(runs[1]));
}

TEST_CASE("a saved layout is restored unchanged, and a damaged one is ignored") {
    NEEDS_DISPLAY();
    const SampleTrace sample;
    AppOptions options;
    options.traces = {sample.path};
    options.layout = "compare";
    DrivenApp driven(options);
    const auto saved = driven.app().layout_state();
    driven.app().apply_layout("report");
    driven.settle();
    REQUIRE(driven.app().views().size() == 1);
    driven.app().restore_layout(saved);
    driven.settle();
    CHECK(driven.app().views().size() == find_layout("compare")->views.size());
    driven.app().restore_layout(nlohmann::json::parse(R"({"views": [3, {"kind": "nothing"}, {"kind": "runs"}]})"));
    driven.settle();
    CHECK(driven.app().views().size() == 1);
}

TEST_CASE("a workspace moves traces, notes, layout and selection to another folder") {
    NEEDS_DISPLAY();
    const SampleTrace sample;
    const fs::path file = sample.folder / "mine.kvscope";
    setenv("XDG_STATE_HOME", (sample.folder / "state").c_str(), 1);
    AppOptions options;
    options.traces = {sample.path};
    options.layout = "compare";
    Cursor selected;
    {
        DrivenApp driven(options);
        driven.session().focus()->pins[0] = {1, 3};
        save_annotations(*driven.session().focus(), nullptr);
        driven.session().selection.select_layer(1);
        driven.session().selection.select_token(2);
        driven.session().mark = "a";
        selected = driven.session().cursor();
        driven.app().save_workspace(file);
        driven.app().tasks().wait();
    }
    fs::remove(sample.path);
    fs::remove(annotations_path(sample.path));
    AppOptions empty;
    empty.layout = "report";
    DrivenApp driven(empty);
    driven.app().open_files({file});
    driven.settle();
    REQUIRE(driven.session().documents().size() == 1);
    CHECK(driven.session().cursor() == selected);
    CHECK(driven.session().mark == "a");
    CHECK(driven.session().focus()->pins.at(0) == std::set<int64_t>{1, 3});
    CHECK(driven.app().views().size() == find_layout("compare")->views.size());
    unsetenv("XDG_STATE_HOME");
}

TEST_CASE("a view, a layout and a mark on the command line have priority over a workspace") {
    NEEDS_DISPLAY();
    const SampleTrace sample;
    const fs::path workspace = sample.folder / "w.kvscope";
    setenv("XDG_STATE_HOME", (sample.folder / "state").c_str(), 1);
    {
        AppOptions options = explore(sample);
        options.mark = "w1";
        DrivenApp driven(options);
        driven.settle();
        driven.app().save_workspace(workspace);
        driven.app().tasks().wait();
        driven.settle();
    }
    const auto opened = [&](AppOptions options) {
        options.traces = {workspace};
        DrivenApp driven(options);
        driven.settle();
        CHECK(driven.app().n_errors() == 0);
        CHECK(driven.session().documents().size() == 1);
        std::vector<std::string> kinds;
        for (const auto& view : driven.app().views()) kinds.push_back(view->kind->name);
        return std::pair(kinds, driven.session().mark);
    };
    const auto [of_workspace, its_mark] = opened({});
    CHECK(std::find(of_workspace.begin(), of_workspace.end(), "difference") != of_workspace.end());
    CHECK(its_mark == "w1");
    AppOptions asked;
    asked.view = "cost";
    asked.mark = "w2";
    CHECK(opened(asked) == std::pair(std::vector<std::string>{"cost"}, std::string("w2")));
    asked = {};
    asked.layout = "report";
    const auto of_report = opened(asked).first;
    CHECK(std::find(of_report.begin(), of_report.end(), "report") != of_report.end());
    CHECK(std::find(of_report.begin(), of_report.end(), "difference") == of_report.end());
    unsetenv("XDG_STATE_HOME");
}

TEST_CASE("a picture that does not fit on the disk is reported, and the old file stays") {
    const trace::sample::TemporaryFolder folder;
    const fs::path path = folder / "window.png";
    std::mt19937 random(1);
    Screenshot noise{100, 100, {}};
    for (int i = 0; i < 3 * 100 * 100; ++i) noise.rgb.push_back(static_cast<uint8_t>(random()));
    const auto failure = [&] {
        rlimit before{};
        getrlimit(RLIMIT_FSIZE, &before);
        const rlimit limit{1000, before.rlim_max};
        const auto handler = std::signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        std::string said;
        try {
            write_png(noise, path);
        } catch (const FileNotWritten& error) {
            said = error.what();
        }
        setrlimit(RLIMIT_FSIZE, &before);
        std::signal(SIGXFSZ, handler);
        return said;
    };
    CHECK_THAT(failure(), Catch::Contains(path.string()) && Catch::Contains("File too large"));
    CHECK(fs::is_empty(folder.path()));
    write_png(noise, path);
    const auto size = fs::file_size(path);
    CHECK(size > 20'000);
    CHECK(!failure().empty());
    CHECK(fs::file_size(path) == size);
    CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("workspaces with the same name do not affect one another, and their notes stay after reopening") {
    NEEDS_DISPLAY();
    const SampleTrace sample;
    setenv("XDG_STATE_HOME", (sample.folder / "state").c_str(), 1);
    const auto file_in = [&](const char* folder) {
        fs::create_directories(sample.folder / folder);
        return sample.folder / folder / "same.kvscope";
    };
    AppOptions options;
    options.traces = {sample.path};
    {
        DrivenApp driven(options);
        driven.app().save_workspace(file_in("plain"));
        driven.app().tasks().wait();
        driven.session().focus()->toggle_pin(1);
        driven.settle();
        driven.app().save_workspace(file_in("pinned"));
        driven.app().tasks().wait();
    }
    DrivenApp driven(AppOptions{});
    driven.app().open_files({file_in("pinned"), file_in("plain")});
    driven.settle();
    REQUIRE(driven.session().documents().size() == 2);
    Document& pinned = *driven.session().documents()[0];
    Document& plain = *driven.session().documents()[1];
    CHECK(pinned.path() != plain.path());
    CHECK(pinned.pins[0] == std::set<int64_t>{1});
    CHECK(plain.pins[0].empty());
    plain.write_note(2, 3, "mine");
    driven.settle();
    DrivenApp later(AppOptions{});
    later.app().open_files({file_in("plain")});
    later.settle();
    REQUIRE(later.session().documents().size() == 1);
    CHECK(later.session().documents()[0]->path() == plain.path());
    CHECK(later.session().documents()[0]->note_on(2, 3));
    unsetenv("XDG_STATE_HOME");
}

TEST_CASE("a trace that is deleted while open does not end the program") {
    NEEDS_DISPLAY();
    const SampleTrace sample;
    AppOptions options;
    options.traces = {sample.path};
    options.layout = "explore";
    DrivenApp driven(options);
    fs::resize_file(sample.path, 100);
    driven.drive([&](ImGuiTestContext& c) { c.KeyPress(ImGuiKey_F5); });
    driven.settle();
    CHECK(driven.app().notices().size() == 1);
    CHECK(driven.session().documents().size() == 1);
}

}  // namespace kvscope::gui::testing
