#ifdef KVSCOPE_WITH_ENGINE

#include <fmt/format.h>
#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "app/gui/session/engine_session.h"
#include "app/gui/session/run_form.h"
#include "app/gui/view/actions.h"
#include "kernels/cuda_library.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/gui/session_with_engine.h"
#include "tests/gui/small_model.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

/// The Run view alone, with the small model.
struct DrivenForm {
    trace::sample::TemporaryFolder folder;
    DrivenApp driven{options()};

    static AppOptions options() {
        AppOptions options;
        options.view = "run";
        options.traces = {small_model};
        return options;
    }

    DrivenForm() {
        driven.app().dismiss_start();
        const auto& engine = *driven.app().engine();
        REQUIRE(driven.draw_until([&] { return engine.status().model_path == small_model; }, patience));
        driven.settle();
    }

    View& view() { return *driven.app().views()[0]->view; }
    nlohmann::json state() {
        nlohmann::json now;
        view().save(now);
        return now;
    }
    void fill(const RunForm& form) { view().load(form.to_json()); }
    void drive(const std::function<void(ImGuiTestContext&)>& steps) {
        driven.drive([&](ImGuiTestContext& c) {
            c.SetRef("//run-1");
            steps(c);
            c.Yield(2);
        });
    }
    bool wait_for_engine() {
        return driven.draw_until([&] { return !driven.app().engine()->status().busy(); }, patience);
    }
};

RunForm small_form(const fs::path& output) {
    RunForm form;
    for (PolicyRow& row : form.rows) row.ticked = row.spec.definition->name == "h2o";
    form.request.context =
        "The quick brown fox jumps over the lazy dog, and then the other fox finds the inner garden.";
    form.request.budgets = "16";
    form.request.options.n_new = 4;
    form.request.output = output;
    return form;
}

/// Buttons, boxes, fields and rows of the form, among those in view, that its right or left border cuts off.
std::vector<std::string> cut_off(ImGuiTestContext& c, const std::vector<const char*>& parts) {
    std::vector<std::string> cut;
    for (const char* part : parts) {
        const ImGuiTestItemInfo window = c.WindowInfo(part);
        ImGuiTestItemList items;
        c.GatherItems(&items, window.ID);
        CHECK(items.GetSize() > 3);
        for (const ImGuiTestItemInfo& item : items) {
            const bool is_in_view = item.RectClipped.GetHeight() > 1 && item.RectFull.GetHeight() > 1;
            if (is_in_view && item.RectClipped.GetWidth() < item.RectFull.GetWidth()) cut.push_back(item.DebugLabel);
        }
    }
    return cut;
}

}  // namespace

TEST_CASE("nothing of the form is cut off, in the narrow panel of Explore and in two columns") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const bool is_wide = GENERATE(false, true);
    CAPTURE(is_wide);
    const trace::sample::TemporaryFolder folder;
    AppOptions options;
    options.traces = {small_model};
    if (is_wide)
        options.view = "run";
    else
        options.layout = "explore";
    DrivenApp driven(options);
    driven.app().show_view(*find_view_kind("run"));
    const auto& engine = *driven.app().engine();
    REQUIRE(driven.draw_until([&] { return engine.status().model_path == small_model; }, patience));
    for (const auto& open : driven.app().views()) {
        RunForm form = small_form(folder / "run.h5");
        form.request.questions = {"Who jumps?", "Over whom?"};
        if (open->kind->name == "run") open->view->load(form.to_json());
    }
    driven.settle();
    const std::vector<const char*> parts =
        is_wide ? std::vector<const char*>{"//run-1/text", "//run-1/form"} : std::vector<const char*>{"//run-1/form"};
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef(c.WindowInfo("//run-1/form").ID);
        c.ItemOpen("###more");
        ImGuiWindow* form = c.WindowInfo("//run-1/form").Window;
        for (float y = 0; y <= form->ScrollMax.y; y += 0.7f * form->InnerRect.GetHeight()) {
            c.ScrollToY(form->ID, y);
            c.Yield(2);
            CHECK(cut_off(c, parts) == std::vector<std::string>{});
        }
        const ImRect run = c.ItemInfo("//run-1/Run").RectFull, copy = c.ItemInfo("//run-1/Copy command").RectFull;
        CHECK(c.WindowInfo("//run-1").Window->InnerRect.Contains(run));
        CHECK(c.WindowInfo("//run-1").Window->InnerRect.Contains(copy));
        if (!is_wide) return;
        // The text takes the height that there is, and nothing of its column has to be scrolled to.
        const ImGuiWindow* text = c.WindowInfo("//run-1/text").Window;
        CHECK(text->ScrollMax.y == 0);
        CHECK(c.ItemInfo("//run-1/**/###aware").RectClipped.GetHeight() > 1);
    });
}

TEST_CASE("what cannot run is marked before Run, which is dead only where nothing could") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenForm form;
    RunForm filled = small_form(form.folder / "run.h5");
    for (PolicyRow& row : filled.rows) {
        const std::string& name = row.spec.definition->name;
        row.ticked = name == "snapkv" || name == "h2o";
        if (name == "snapkv") row.spec.values.set("window", "16");
    }
    filled.request.budgets = "8,1000";
    form.fill(filled);
    const auto shown = [&] { return form.driven.shown_text(); };
    const auto is_dead = [&] {
        bool dead = false;
        form.drive(
            [&](ImGuiTestContext& c) { dead = (c.ItemInfo("//run-1/Run").ItemFlags & ImGuiItemFlags_Disabled) != 0; });
        return dead;
    };
    const auto is_counted = [&] { return shown().find("tokens of a context of") != std::string::npos; };
    REQUIRE(form.driven.draw_until(is_counted, patience));
    form.driven.settle();
    std::string text = shown();
    CAPTURE(text);
    CHECK(!is_dead());
    CHECK(text.find("8 is too small for SnapKV (window=16), which needs at least 17 entries") != std::string::npos);
    CHECK(text.find("not at 8: it needs at least 17 entries") != std::string::npos);
    CHECK(text.find("1 of them will fail") != std::string::npos);
    CHECK(text.find("1,000 is more than the prompt's") != std::string::npos);
    CHECK(text.find("nothing is dropped") != std::string::npos);
    form.drive([&](ImGuiTestContext& c) {
        CHECK(c.ItemExists("**/some budgets fail"));  // snapkv's
        CHECK(c.ItemExists("**/cannot run"));         // those without their files
        c.MouseMove("**/some budgets fail");
        c.SleepNoSkip(2, 0.1f);
        const ImGuiWindow* tooltip = c.GetWindowByRef("//##Tooltip_00");
        CHECK((tooltip && tooltip->Active && !tooltip->Hidden));
        c.ItemInputValue("**/##budgets", "8");
    });
    form.driven.settle();
    CHECK(!is_dead());
    CHECK(shown().find("at none of the budgets") != std::string::npos);
    for (PolicyRow& row : filled.rows) row.ticked = row.spec.definition->name == "snapkv";
    filled.request.budgets = "8";
    form.fill(filled);
    form.driven.settle();
    CHECK(is_dead());
    CHECK(shown().find("SnapKV (window=16) cannot run") != std::string::npos);
    form.drive([&](ImGuiTestContext& c) { c.ItemInputValue("**/##budgets", "17"); });
    form.driven.settle();
    CHECK(!is_dead());
    form.drive([&](ImGuiTestContext& c) { c.ItemInputValue("**/tokens to generate", "600"); });
    form.driven.settle();
    text = shown();
    CHECK(is_dead());
    CHECK(text.find("600 new ones do not fit the context of 512: generate at most") != std::string::npos);
    CHECK(!std::regex_search(text, std::regex("--[a-z]")));
}

TEST_CASE("the form of a narrow panel is maximised to two columns by its button, and goes back by it") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.app().show_view(*find_view_kind("run"));
    driven.settle();
    const size_t n_views = driven.app().views().size();
    const auto click = [&](const char* label) {
        driven.drive([&](ImGuiTestContext& c) {
            CHECK(!c.ItemExists("//run-1/Cancel##run"));
            c.ItemClick(fmt::format("//run-1/{}", label).c_str());
        });
        driven.settle();
    };
    const auto has_columns = [&] {
        bool has = false;
        driven.drive([&](ImGuiTestContext& c) {
            const ImGuiWindow* text = c.WindowInfo("//run-1/text", ImGuiTestOpFlags_NoError).Window;
            has = text && text->Active;
        });
        return has;
    };
    CHECK(!has_columns());
    click("Maximise");
    CHECK(driven.app().views().size() == 1);
    CHECK(has_columns());
    click("Restore");
    CHECK(driven.app().views().size() == n_views);
    CHECK(!has_columns());
}

TEST_CASE("a device that this machine lacks is shown where it was asked for, refused, and left for the processor") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    if (kernels::cuda::available()) KVSCOPE_SKIP("this machine has a card");
    DrivenForm form;
    RunForm asked = small_form(form.folder / "run.h5");
    bool was_shown = true, is_shown = false;
    const auto in_form = [&](const std::function<void(ImGuiTestContext&)>& steps) {
        form.drive([&](ImGuiTestContext& c) {
            c.SetRef(c.WindowInfo("//run-1/form").ID);
            steps(c);
        });
    };
    const EngineSession& engine = *form.driven.app().engine();
    in_form([&](ImGuiTestContext& c) { c.ItemOpen("###more"); });
    REQUIRE(form.driven.draw_until([&] { return !engine.status().devices.empty(); }, patience));
    CHECK(engine.status().devices.size() == 1);
    in_form([&](ImGuiTestContext& c) {
        c.Yield(2);
        was_shown = c.ItemExists("###more/##device");
    });
    asked.request.options.device = "cuda";
    form.fill(asked);
    in_form([&](ImGuiTestContext& c) { is_shown = c.ItemExists("###more/##device"); });
    CHECK_FALSE(was_shown);
    CHECK(is_shown);
    in_form([&](ImGuiTestContext& c) {
        c.ItemClick("###more/##device");
        c.ItemClick("//$FOCUSED/cpu: the processor");
    });
    CHECK(form.state()["device"] == "cpu");
    form.drive([&](ImGuiTestContext& c) { c.ItemClick("//run-1/Run"); });
    REQUIRE(form.wait_for_engine());
    CHECK(engine.status().error == "");
    asked.request.output = form.folder / "other.h5";
    form.fill(asked);
    form.drive([&](ImGuiTestContext& c) { c.ItemClick("//run-1/Run"); });
    REQUIRE(form.wait_for_engine());
    CHECK_THAT(engine.status().error, Catch::StartsWith("--device cuda: "));
    CHECK(engine.status().device == "");
}

TEST_CASE("with a model that cannot be used Run is dead and no tokens are counted, until another one is chosen") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenForm form;
    form.fill(small_form(form.folder / "run.h5"));
    const fs::path bad = form.folder / "bad.gguf";
    std::ofstream(bad) << "no model";
    form.driven.settle();
    const auto counts = [&] {
        return form.driven.draw_until(
            [&] { return form.driven.shown_text().find("of a context of 512") != std::string::npos; }, 200);
    };
    CHECK(counts());
    const auto type_model = [&](const fs::path& path) {
        form.drive([&](ImGuiTestContext& c) {
            c.SetRef(c.WindowInfo("//run-1/text").ID);
            c.ItemInputValue("##model path", path.c_str());
        });
        REQUIRE(form.wait_for_engine());
        form.driven.settle();
    };
    const auto is_dead = [&] {
        bool is_disabled = false;
        form.drive([&](ImGuiTestContext& c) {
            is_disabled = (c.ItemInfo("//run-1/Run").ItemFlags & ImGuiItemFlags_Disabled) != 0;
        });
        return is_disabled;
    };
    CHECK_FALSE(is_dead());
    type_model(bad);
    CHECK(form.driven.app().engine()->status().is_model_refused);
    CHECK(is_dead());
    CHECK_FALSE(counts());
    type_model(small_model);
    CHECK_FALSE(is_dead());
    CHECK(counts());
}

TEST_CASE("why a run failed is told until the form asks for another") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenForm form;
    RunForm asked = small_form(form.folder / "run.h5");
    std::ofstream(asked.request.output) << "no trace";
    form.fill(asked);
    form.drive([&](ImGuiTestContext& c) { c.ItemClick("//run-1/Run"); });
    REQUIRE(form.wait_for_engine());
    form.driven.settle();
    const std::string error = form.driven.app().engine()->status().error;
    REQUIRE(!error.empty());
    const auto n_told = [&] {
        const std::string shown = form.driven.shown_text();
        const std::string begin = error.substr(0, 20);
        int n = 0;
        for (size_t at = shown.find(begin); at != std::string::npos; at = shown.find(begin, at + 1)) ++n;
        return n;
    };
    const int n_before = n_told();  // the notice among them
    asked.request.output = form.folder / "other.h5";
    form.fill(asked);
    form.driven.settle();
    CHECK(n_told() == n_before - 1);
}

TEST_CASE("what is seldom changed is behind More, marked where it is changed, and one button back") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenForm form;
    form.fill(small_form(form.folder / "run.h5"));
    bool was_open = true;
    bool refuses = false;
    const auto in_form = [&](const std::function<void(ImGuiTestContext&)>& steps) {
        form.drive([&](ImGuiTestContext& c) {
            c.SetRef(c.WindowInfo("//run-1/form").ID);  // of what is scrolled out of view a label is not known
            steps(c);
        });
    };
    in_form([&](ImGuiTestContext& c) {
        was_open = c.ItemExists("###more/##temperature");
        c.ItemOpen("###more");
        c.ItemInputValue("###more/##temperature", "-1");
        c.Yield(2);
        refuses = (c.ItemInfo("//run-1/Run").ItemFlags & ImGuiItemFlags_Disabled) != 0;
    });
    CHECK(!was_open);
    CHECK(refuses);
    CHECK(form.state()["more"] == true);
    in_form([&](ImGuiTestContext& c) {
        c.ItemInputValue("###more/##temperature", "0.5");
        c.ItemInputValue("###more/##top-p", "0.9");
        c.ItemInputValue("###more/##sampling seed", "3");
        c.ItemClick("###more/##ignore end of text");
        c.ItemInputValue("###more/##window", "12");
        c.ItemClick("###more/↺##top-p");
        c.ItemClick("###more/##isolated");
    });
    auto now = form.state();
    CHECK(now["temperature"] == 0.5);
    CHECK(now["top_p"] == 1.0);
    CHECK(now["sampling_seed"] == 3);
    CHECK(now["ignore_eos"] == true);
    CHECK(now["window"] == 12);
    CHECK(now["isolated"] == true);
    form.drive([&](ImGuiTestContext& c) { c.ItemClick("//run-1/Run"); });
    REQUIRE(form.driven.draw_until([&] { return !form.driven.session().documents().empty(); }, patience));
    REQUIRE(form.wait_for_engine());
    form.driven.settle();
    const auto recipe = nlohmann::json::parse(form.driven.session().documents()[0]->reader()->recipe_json());
    CHECK(recipe["temperature"] == 0.5);
    CHECK(recipe["sampling_seed"] == 3);
    CHECK(recipe["mode"] == "isolated");
    CHECK(recipe["window"] == 12);
    in_form([&](ImGuiTestContext& c) { c.ItemClick("###more/Back to defaults##more"); });
    now = form.state();
    CHECK(now["temperature"] == 0.0);
    CHECK(now["window"] == 32);
    CHECK(now["isolated"] == false);
}

TEST_CASE("the form begins with the chat template as the window was told") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    for (const bool wanted : {true, false}) {
        AppOptions options = DrivenForm::options();
        options.use_template = wanted;
        DrivenApp driven(options);
        driven.app().dismiss_start();
        driven.settle();
        nlohmann::json now;
        driven.app().views()[0]->view->save(now);
        RunForm form;
        form.from_json(now);
        CHECK(form.request.options.use_template == wanted);
    }
}

// The address sanitizer sees what is read beyond the text where the copy is not dropped.
TEST_CASE("a question that was replaced while nobody types is drawn at another width") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenForm form;
    form.fill(small_form(form.folder / "run.h5"));
    ImGuiID question = 0;
    form.drive([&](ImGuiTestContext& c) {
        question = c.ItemInfo("**/##question").ID;
        c.ItemInputValue("**/##question", std::string(400, 'w').c_str());
        c.ItemClick("**/###aware");
    });
    const ImGuiInputTextState& copy = ImGui::GetCurrentContext()->InputTextState;
    CHECK(copy.ID == question);
    form.fill(small_form(form.folder / "run.h5"));
    form.drive([](ImGuiTestContext& c) { c.Yield(2); });
    CHECK(copy.ID != question);
    form.drive([](ImGuiTestContext& c) {
        ImGui::GetStyle().ScrollbarSize += 9;  // the form becomes narrower
        c.Yield(3);
        ImGui::GetStyle().ScrollbarSize -= 9;
    });
    CHECK(form.state()["questions"] != std::vector<std::string>{std::string(400, 'w')});
}

TEST_CASE("questions are added, written over several lines, and taken away") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenForm form;
    form.fill(small_form(form.folder / "run.h5"));
    form.drive([&](ImGuiTestContext& c) {
        c.ItemInputValue("**/##question", "Who jumps?");
        c.ItemClick("**/+ question");
        c.ItemClick("**/+ question");
        c.Yield(2);
        c.ItemInput("**/##question 2");
        c.KeyCharsAppend("Over");
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_Enter);
        c.KeyCharsAppend("whom?");
        c.KeyPress(ImGuiKey_Enter);
        c.ItemInput("**/##question 3");
        c.KeyCharsAppend("Why?");
        c.KeyPress(ImGuiKey_Enter);
        c.ItemClick("**/×##question");
        c.Yield(2);
        c.ItemClick("**/###aware");
    });
    CHECK(form.state()["questions"] == std::vector<std::string>{"Over\nwhom?", "Why?"});
    CHECK(form.state()["query_aware"] == false);
    form.drive([&](ImGuiTestContext& c) { c.ItemClick("Run"); });
    REQUIRE(form.driven.draw_until([&] { return !form.driven.session().documents().empty(); }, patience));
    REQUIRE(form.wait_for_engine());
    form.driven.settle();
    const auto& document = *form.driven.session().documents()[0];
    REQUIRE(document.reader()->n_prompts() == 2);
    CHECK(document.reader()->prompt(0).question == "Over\nwhom?");
    CHECK(document.reader()->prompt(1).question == "Why?");
    CHECK(document.reader()->prompt(1).context_of == 0);
}

TEST_CASE("a text file that is dropped on the window becomes the prompt, and what is no text is told") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenForm form;
    std::ofstream(form.folder / "report.md") << "# A report\n\nThe fox signed it.\n";
    std::ofstream(form.folder / "latin.txt") << "Se\xF1or";
    form.driven.app().open_files({form.folder / "report.md"});
    form.driven.settle();
    CHECK(form.state()["context"] == "# A report\n\nThe fox signed it.\n");
    CHECK(form.state()["name"] == "report");
    form.driven.app().open_files({form.folder / "latin.txt"});
    form.driven.settle();
    CHECK(form.state()["name"] == "report");
    REQUIRE(form.driven.app().n_errors() == 1);
    CHECK(form.driven.app().notices().back().find("latin.txt is not UTF-8") != std::string::npos);
    std::ofstream(form.folder / "second.txt") << "Another text.";
    form.drive([&](ImGuiTestContext& c) {
        c.ItemClick("**/File…##prompt");
        c.Yield(2);
        c.SetRef("//$FOCUSED");
        c.ItemInputValue("**/##path", (form.folder / "second.txt").c_str());
    });
    form.driven.settle();
    CHECK(form.state()["context"] == "Another text.");
}

TEST_CASE("a text file on the command line is the prompt of the Run view, in the first layout, too") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    std::ofstream(folder / "notes.txt") << "Some notes.";
    AppOptions options;
    options.traces = {folder / "notes.txt"};
    options.layout = "explore";
    DrivenApp driven(options);
    driven.settle();
    CHECK(driven.app().n_errors() == 0);
    REQUIRE(driven.app().focused_view());
    CHECK(driven.app().focused_view()->kind->name == "run");
    nlohmann::json now;
    driven.app().focused_view()->view->save(now);
    CHECK(now["context"] == "Some notes.");
}

TEST_CASE("a wrong path to a model and Run at once: the run fails with that path, not on another model") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenForm form;
    form.fill(small_form(form.folder / "run.h5"));
    const std::string wrong = form.folder / "nothing.gguf";
    form.drive([&](ImGuiTestContext& c) {
        c.ItemInput("**/##model path");
        c.KeyCharsReplace(wrong.c_str());
        c.ItemClick("Run");  // leaves the field without Enter
    });
    REQUIRE(form.wait_for_engine());
    form.driven.settle();
    CHECK(form.driven.app().n_errors() >= 1);  // 2 where the button was clicked before the model was refused
    for (const auto& notice : form.driven.app().notices()) CHECK(notice.find("nothing.gguf") != std::string::npos);
    CHECK(form.driven.session().documents().empty());
    CHECK(!fs::exists(form.folder / "run.h5"));
    CHECK(form.driven.app().engine()->status().model_path == small_model);
}

TEST_CASE("the form is copied as a command line by its button and from the palette") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenForm form;
    const RunForm filled = small_form(form.folder / "run.h5");
    form.fill(filled);
    const bool by_palette = GENERATE(false, true);
    std::string copied;
    form.drive([&](ImGuiTestContext& c) {
        if (by_palette) {
            c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
            c.Yield(2);
            c.KeyCharsAppend("copy the form");
            c.Yield(2);
            c.KeyPress(ImGuiKey_Enter);
        } else {
            c.ItemClick("Copy command");
        }
        c.Yield(2);
        copied = ImGui::GetClipboardText();  // the test engine has one of its own
    });
    RunForm expected = filled;
    expected.request.spectra = true;  // of so small a model they cost little
    CHECK(copied == expected.command(small_model));
}

TEST_CASE("keys show and hide the first 27 runs of Runs, and the palette any by its label") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    AppOptions options;
    options.traces = {sample.path};
    options.view = "runs";
    DrivenApp driven(options);
    Session& session = driven.session();
    Document& document = *session.documents()[0];
    while (document.reader()->n_runs(0) < 30)
        document.add_run(0, document.reader()->run_record(0, 1), document.id_of(0, 1));
    driven.settle();
    const auto runs = session.all_runs();
    const auto press = [&](ImGuiKeyChord key) { driven.drive([&](ImGuiTestContext& c) { c.KeyPress(key); }); };
    for (const int number : {1, 9, 10, 14, 18, 19, 27}) {
        CAPTURE(number);
        const RunKey run = runs[static_cast<size_t>(number) - 1];
        const auto n_hidden = document.hidden.size();
        CHECK(session.is_visible(run));
        press(run_key(number));
        CHECK(!session.is_visible(run));
        CHECK(document.hidden.size() == n_hidden + 1);
    }
    press(run_key(14));
    CHECK(session.is_visible(runs[13]));
    CHECK(run_key(28) == 0);
    CHECK(key_text(run_key(10)) == "Shift+1");
    CHECK(key_text(run_key(27)) == "Ctrl+9");
    driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
        c.Yield(2);
        c.KeyCharsAppend(("hide run " + session.look(runs[4]).label).c_str());
        c.Yield(2);
        c.KeyPress(ImGuiKey_Enter);
        c.Yield(2);
    });
    CHECK(document.hidden.size() == 7);
}

TEST_CASE("another prompt of a trace has the same runs selected, and as A and B") {
    trace::sample::TemporaryFolder folder;
    trace::sample::Options questions;
    questions.n_questions = 3;
    trace::sample::write(folder / "questions.h5", questions);
    Tasks tasks([] {});
    Session session(tasks);
    Document& document = session.open(folder / "questions.h5");
    session.selection.select_run(document.key_of(0, 2));
    session.selection.select_layer(1);
    session.selection.select_token(4);
    session.pair.a = document.key_of(0, 1);
    session.pair.b = document.key_of(0, 3);
    session.show_prompt(document, 2);
    CHECK(document.prompt == 2);
    CHECK(session.cursor().run == document.key_of(2, 2));
    CHECK(session.cursor().layer == 1);
    CHECK(session.cursor().first_token == 4);
    CHECK(session.pair.a == document.key_of(2, 1));
    CHECK(session.pair.b == document.key_of(2, 3));
}

}  // namespace kvscope::gui::testing

#endif
