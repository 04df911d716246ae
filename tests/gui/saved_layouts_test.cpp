#include "app/gui/saved/saved_layouts.h"

#include <fmt/format.h>
#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "app/gui/session/renaming.h"
#include "app/gui/session/settings.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> kinds(DrivenApp& driven) {
    std::vector<std::string> names;
    for (const auto& open : driven.app().views()) names.push_back(open->kind->name);
    return names;
}

void choose_in_menu(DrivenApp& driven, const char* item) {
    driven.drive([&](ImGuiTestContext& c) {
        c.MenuClick(fmt::format("//##MainMenuBar/Layout/{}", item).c_str());
        c.Yield(2);
    });
}

/// @param button button to click after typing the name
void save_as(ImGuiTestContext& c, const char* name, const char* button) {
    c.MenuClick("//##MainMenuBar/Layout/Save this layout as…");
    c.Yield(2);
    c.SetRef("//$FOCUSED");
    c.ItemInputValue("**/##layout name", name);
    c.Yield(2);
    // Enter in the field saves the layout and closes the question, unless the name is taken or invalid.
    const std::string found = fmt::format("**/{}", button);
    if (c.ItemExists(found.c_str())) c.ItemClick(found.c_str());
    c.Yield(2);
}

void answer_dialog(ImGuiTestContext& c, const char* menu_item, const fs::path& path, const char* button) {
    c.MenuClick(menu_item);
    c.Yield(2);
    c.SetRef("//$FOCUSED");
    c.ItemInput("**/##path");
    c.KeyCharsReplace(path.c_str());
    c.Yield(2);
    c.ItemClick(button);
    c.Yield(4);
}

}  // namespace

TEST_CASE("a layout needs a unique name") {
    CHECK(objection_to_layout_name("Reading").empty());
    for (const char* name : {"", "  ", "explore", "Explore", "REPORT", "a##b", "a\nb"}) {
        CAPTURE(name);
        CHECK_FALSE(objection_to_layout_name(name).empty());
    }
}

TEST_CASE("two windows keep each other's saved layouts") {
    const trace::sample::TemporaryFolder folder;
    const fs::path file = folder / "settings.json";
    const nlohmann::json some = {{"views", nlohmann::json::array()}};
    Settings at_first;
    at_first.layouts = {{"old", some}, {"older", some}};
    save_settings(at_first, file);
    const Settings before = load_settings(file);
    REQUIRE(before.layouts == at_first.layouts);
    Settings one = before, other = before;
    one.layouts["one"] = some;
    save_settings(one, file, &before);
    other.layouts["other"] = some;
    other.layouts.erase("old");
    save_settings(other, file, &before);
    const auto names = [&] {
        std::vector<std::string> all;
        for (const auto& [name, layout] : load_settings(file).layouts) all.push_back(name);
        return all;
    };
    CHECK(names() == std::vector<std::string>{"older", "one", "other"});
    CHECK(other.layouts == load_settings(file).layouts);
    std::ofstream(file) << R"({"layouts": {"sound": {"views": []}, "damaged": 4}})";
    CHECK(names() == std::vector<std::string>{"sound"});
    std::ofstream(file) << R"({"layouts": 4, "light": true})";
    CHECK(names().empty());
    CHECK(load_settings(file).light);
    CHECK_FALSE(load_settings(file).problem.empty());
}

TEST_CASE("a layout is saved under a name, applied without losing text, replaced after a question, and removed") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.app().apply_layout("compare");
    driven.settle();
    const auto in_compare = kinds(driven);
    const auto& saved = driven.app().settings().layouts;
    driven.drive([](ImGuiTestContext& c) { save_as(c, "report", "Cancel"); });
    CHECK(saved.empty());
    driven.drive([](ImGuiTestContext& c) { save_as(c, "Side by side", "Save"); });
    REQUIRE(saved.contains("Side by side"));
    CHECK(saved.at("Side by side").dump().find("\"state\"") == std::string::npos);
    driven.app().apply_layout("report");
    driven.settle();
    for (const auto& open : driven.app().views()) REQUIRE(open->kind->name == "report");
    choose_in_menu(driven, "Side by side");
    driven.settle();
    CHECK(kinds(driven) == in_compare);
    for (const auto& open : driven.app().views())
        if (open->kind->name == "prompt") open->view->load({{"by_heads", true}});
    driven.start_by_palette("layout side by side");
    for (const auto& open : driven.app().views()) {
        nlohmann::json state;
        open->view->save(state);
        if (open->kind->name == "prompt") CHECK(state["by_heads"] == true);
    }
    // Enter does not replace a layout; a click on Replace does.
    driven.app().apply_layout("report");
    driven.settle();
    const nlohmann::json before = saved.at("Side by side");
    driven.drive([](ImGuiTestContext& c) { save_as(c, "Side by side", "Save"); });
    CHECK(saved.at("Side by side") == before);
    driven.drive([](ImGuiTestContext& c) { save_as(c, "Side by side", "Replace it"); });
    CHECK(saved.at("Side by side") != before);
    for (const char* answer : {"Cancel", "Remove"}) {
        driven.drive([&](ImGuiTestContext& c) {
            c.MenuClick("//##MainMenuBar/Layout/Remove/Side by side…");
            c.Yield(2);
            c.ItemClick(fmt::format("//$FOCUSED/{}", answer).c_str());
            c.Yield(2);
        });
        CHECK(saved.contains("Side by side") == (std::string(answer) == "Cancel"));
    }
}

TEST_CASE("a layout is exported and imported; a damaged file is reported, and unknown views are ignored") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.app().apply_layout("compare");
    driven.settle();
    const auto in_compare = kinds(driven);
    const fs::path file = sample.folder / "mine.json";
    constexpr const char* import = "//##MainMenuBar/Layout/Import a layout…";
    driven.drive(
        [&](ImGuiTestContext& c) { answer_dialog(c, "//##MainMenuBar/Layout/Export this layout…", file, "Save"); });
    REQUIRE(fs::exists(file));
    driven.app().apply_layout("report");
    driven.settle();
    driven.drive([&](ImGuiTestContext& c) { answer_dialog(c, import, file, "Open"); });
    driven.settle();
    CHECK(kinds(driven) == in_compare);
    const auto& saved = driven.app().settings().layouts;
    CHECK(saved.contains("mine"));
    for (const char* damaged : {"{\"views\":", "[1]", "{\"views\": []}", "{\"kvscope_layout\": 1, \"views\": 3}",
                                "{\"kvscope_layout\": 1, \"views\": [{\"kind\": \"of later\"}]}",
                                "{\"kvscope_layout\": 2, \"views\": [{\"kind\": \"cost\"}]}"}) {
        CAPTURE(damaged);
        std::ofstream(file) << damaged;
        const size_t n_errors = driven.app().n_errors();
        driven.drive([&](ImGuiTestContext& c) { answer_dialog(c, import, file, "Open"); });
        CHECK(driven.app().n_errors() == n_errors + 1);
        CHECK(kinds(driven) == in_compare);
        CHECK(saved.size() == 1);
    }
    std::ofstream(file) << R"({"kvscope_layout": 1, "name": "Explore", "windows": 5,
        "views": [{"kind": "of later"}, 7, {"kind": "cost", "number": "x"}]})";
    driven.drive([&](ImGuiTestContext& c) { answer_dialog(c, import, file, "Open"); });
    driven.settle();
    CHECK(kinds(driven) == std::vector<std::string>{"cost"});
    CHECK(saved.contains("mine 2"));
}

TEST_CASE("a model's name chosen in another window stays after this window saves") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    setenv("XDG_CONFIG_HOME", (sample.folder / "config").c_str(), 1);
    {
        DrivenApp driven(explore(sample), true);
        driven.settle();
        driven.drive([](ImGuiTestContext& c) { c.KeyPress(ImGuiKey_2); });
        const auto file = settings_file();
        REQUIRE(driven.draw_until([&] { return std::filesystem::exists(file); }, 4000));
        const Settings before = load_settings(file);
        Settings other = before;
        other.model_names["fingerprint"] = "theirs";
        save_settings(other, file, &before);
        const trace::ModelAttributes model = driven.session().focus()->reader()->model();
        for (const char* layout : {"compare", "explore", "report"}) {
            driven.start_by_palette(std::string("layout ") + layout);
            set_user_model_name(driven.session().model_names, model, layout);
            const auto at = std::filesystem::last_write_time(file);
            REQUIRE(driven.draw_until([&] { return std::filesystem::last_write_time(file) != at; }, 4000));
            const auto stored = load_settings(file).model_names;
            CHECK(stored == ModelNames{{"fingerprint", "theirs"}, {model.fingerprint, layout}});
        }
        set_user_model_name(driven.session().model_names, model, "");
        driven.start_by_palette("layout explore");
        CHECK(driven.draw_until(
            [&] {
                return load_settings(file).model_names == ModelNames{{"fingerprint", "theirs"}};
            },
            4000));
        CHECK(driven.session().model_names == ModelNames{{"fingerprint", "theirs"}});
    }
    unsetenv("XDG_CONFIG_HOME");
}

}  // namespace kvscope::gui::testing
