#ifdef KVSCOPE_WITH_ENGINE

#include <catch2/catch.hpp>

#include "common/json.h"
#include "tests/gui/driven_form.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {

TEST_CASE("More contains rare options, marks changed ones, and resets them with one button") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenForm form;
    form.fill(small_form(form.folder / "run.h5"));
    bool was_open = true;
    bool refuses = false;
    const auto in_form = [&](const std::function<void(ImGuiTestContext&)>& steps) {
        form.drive([&](ImGuiTestContext& c) {
            c.SetRef(c.WindowInfo("//run-1/form").ID);  // labels outside the visible part are unknown
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
    in_form([&](ImGuiTestContext& c) { c.ItemClick("###more/Restore defaults##more"); });
    now = form.state();
    CHECK(now["temperature"] == 0.0);
    CHECK(now["window"] == 32);
    CHECK(now["isolated"] == false);
}

TEST_CASE("the form begins with the chat template from the command line") {
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

TEST_CASE("questions can be added, span several lines, and be removed") {
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

TEST_CASE("a button and the palette copy the form as a command") {
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
        copied = ImGui::GetClipboardText();  // the test engine has its own clipboard
    });
    RunForm expected = filled;
    expected.request.spectra = true;  // spectra of such a small model take little time
    CHECK(copied == expected.command(small_model));
}

TEST_CASE("the chosen model is used after the next start") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    nlohmann::json saved;
    {
        DrivenForm form;
        form.fill(small_form(folder / "run.h5"));
        form.driven.settle();
        saved = form.driven.app().layout_state();
    }
    AppOptions options;
    options.saved_layout = saved;
    DrivenApp driven(options);
    driven.app().dismiss_start();
    const auto& engine = *driven.app().engine();
    REQUIRE(driven.draw_until([&] { return !engine.status().model_path.empty(); }, patience));
    CHECK(engine.status().model_path == small_model);
    driven.settle();
    driven.drive([](ImGuiTestContext& c) { c.ItemClick("//run-1/Run"); });
    REQUIRE(driven.draw_until([&] { return !driven.session().documents().empty(); }, patience));
    REQUIRE(driven.draw_until([&] { return !engine.status().busy(); }, patience));
    CHECK(engine.status().model_path == small_model);
}

TEST_CASE("a form saved before its model is loaded keeps the model, and an old form has the default") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    AppOptions options;
    options.view = "run";
    DrivenApp driven(options);
    driven.app().dismiss_start();
    driven.settle();
    View& view = *driven.app().views()[0]->view;
    const auto state = [&] {
        nlohmann::json now;
        view.save(now);
        return now;
    };
    CHECK(state()["model"] == "");
    view.load({{"model", "/models/some.gguf"}});
    driven.settle();
    CHECK(state()["model"] == "/models/some.gguf");
    CHECK(driven.shown_text().find("some.gguf, loaded when needed") != std::string::npos);
}

}  // namespace kvscope::gui::testing

#endif
