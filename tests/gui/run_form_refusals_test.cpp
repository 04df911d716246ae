#ifdef KVSCOPE_WITH_ENGINE

#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <regex>

#include "kernels/cuda_library.h"
#include "tests/gui/driven_form.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {

TEST_CASE("impossible runs are marked before the start, and Run is disabled only if no run is possible") {
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
    const auto is_counted = [&] { return shown().find("tokens; the model accepts") != std::string::npos; };
    REQUIRE(form.driven.draw_until(is_counted, patience));
    form.driven.settle();
    std::string text = shown();
    CAPTURE(text);
    CHECK(!is_dead());
    CHECK(text.find("8 is too small for SnapKV (window=16), which needs at least 17 entries") != std::string::npos);
    CHECK(text.find("not at 8: the policy needs at least 17 entries") != std::string::npos);
    CHECK(text.find("1 of these runs will fail") != std::string::npos);
    CHECK(text.find("1,000 is more than the prompt's") != std::string::npos);
    CHECK(text.find("nothing is dropped") != std::string::npos);
    form.drive([&](ImGuiTestContext& c) {
        CHECK(c.ItemExists("**/some budgets fail"));  // mark of snapkv
        CHECK(c.ItemExists("**/cannot run"));         // marks of policies without their files
        c.MouseMove("**/some budgets fail");
        c.SleepNoSkip(2, 0.1f);
        const ImGuiWindow* tooltip = c.GetWindowByRef("//##Tooltip_00");
        CHECK((tooltip && tooltip->Active && !tooltip->Hidden));
        c.ItemInputValue("**/##budgets", "8");
    });
    form.driven.settle();
    CHECK(!is_dead());
    CHECK(shown().find("not at any of the budgets") != std::string::npos);
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
    CHECK(text.find("600 new ones do not fit into the context of 512 tokens: generate at most") != std::string::npos);
    CHECK(!std::regex_search(text, std::regex("--[a-z]")));
}

TEST_CASE("a policy without its file fails alone, as the form predicts, and the others run") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenForm form;
    RunForm filled = small_form(form.folder / "run.h5");
    for (PolicyRow& row : filled.rows) {
        if (row.spec.definition->name != "headkv") continue;
        row.ticked = true;
        row.spec.values.set("window", "8");  // less than the budget
    }
    form.fill(filled);
    const auto is_said = [&] {
        return form.driven.shown_text().find("1 of these runs will fail") != std::string::npos;
    };
    REQUIRE(form.driven.draw_until(is_said, patience));
    form.drive([](ImGuiTestContext& c) { c.ItemClick("//run-1/Run"); });
    REQUIRE(form.driven.draw_until([&] { return !form.driven.session().documents().empty(); }, patience));
    REQUIRE(form.wait_for_engine());
    form.driven.settle();
    const auto reader = form.driven.session().documents()[0]->reader();
    REQUIRE(reader->n_runs(0) == 3);
    for (int run = 0; run < 3; ++run) {
        const trace::RunAttributes& attributes = reader->run(0, run);
        CAPTURE(attributes.label, attributes.message);
        CHECK(attributes.status == (attributes.policy == "headkv" ? "failed" : "complete"));
        CHECK((attributes.message.find("importance") != std::string::npos) == (attributes.policy == "headkv"));
    }
}

TEST_CASE("an error is shown once at its field, and beside Run with its place") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenForm form;
    RunForm filled = small_form(form.folder / "run.h5");
    const auto is_said_once = [&](const std::string& heading) {
        const std::string problem = filled.problem({}).text;
        CAPTURE(problem);
        REQUIRE_FALSE(problem.empty());
        form.fill(filled);
        form.driven.settle();
        const std::string text = form.driven.shown_text();
        CHECK(text.find("See " + heading + " below") != std::string::npos);
        const size_t at = text.find(problem);
        CHECK(at != std::string::npos);
        CHECK(text.find(problem, at + 1) == std::string::npos);
    };
    filled.request.budgets = "0,8,64,20%,abc";
    is_said_once("Budgets");
    filled.request.budgets = "16";
    filled.request.options.n_new = -1;
    is_said_once("Output");
    filled.request.options.n_new = 4;
    filled.request.output = form.folder.path();
    is_said_once("Output");
}

TEST_CASE("one click or the palette selects all policies that can run, or none") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenForm form;
    form.fill(small_form(form.folder / "run.h5"));
    // Whether a policy can run depends on the number of tokens.
    const auto is_counted = [&] {
        return form.driven.shown_text().find("tokens; the model accepts") != std::string::npos;
    };
    REQUIRE(form.driven.draw_until(is_counted, patience));
    form.driven.settle();
    const auto n_ticked = [&] {
        const nlohmann::json policies = form.state()["policies"];
        return std::count_if(policies.begin(), policies.end(), [](const auto& row) { return row["ticked"] == true; });
    };
    REQUIRE(n_ticked() == 1);
    form.drive([&](ImGuiTestContext& c) { c.ItemClick("**/All##policies"); });
    const auto n_all = n_ticked();
    CHECK(n_all > 10);
    CHECK(n_all < static_cast<std::ptrdiff_t>(form.state()["policies"].size()));  // some policies need a file
    form.drive([&](ImGuiTestContext& c) { c.ItemClick("**/None##policies"); });
    CHECK(n_ticked() == 0);
    form.driven.start_by_palette("select all polic");
    CHECK(n_ticked() == n_all);
    form.driven.start_by_palette("deselect all");
    CHECK(n_ticked() == 0);
}

TEST_CASE("without a GPU, the form gives the reason; another device is refused and replaced by the processor") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    if (kernels::cuda::available()) KVSCOPE_SKIP("this machine has a GPU");
    DrivenForm form;
    RunForm asked = small_form(form.folder / "run.h5");
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
    CHECK(engine.status().why_only_cpu == kernels::cuda::unavailable_reason());
    in_form([&](ImGuiTestContext& c) {
        c.Yield(2);
        CHECK(c.ItemExists("###more/##device"));
    });
    asked.request.options.device = "cuda";
    form.fill(asked);
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

TEST_CASE("with an unusable model, Run is disabled and no tokens are counted") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenForm form;
    form.fill(small_form(form.folder / "run.h5"));
    const fs::path bad = form.folder / "bad.gguf";
    std::ofstream(bad) << "no model";
    form.driven.settle();
    const auto counts = [&] {
        return form.driven.draw_until(
            [&] { return form.driven.shown_text().find("the model accepts 512") != std::string::npos; }, 200);
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

TEST_CASE("the reason for a failed run is shown until the next run is requested") {
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
    const int n_before = n_told();  // includes the notice
    asked.request.output = form.folder / "other.h5";
    form.fill(asked);
    form.driven.settle();
    CHECK(n_told() == n_before - 1);
}

TEST_CASE("a run started right after a wrong model path fails with that path and uses no other model") {
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
    CHECK(form.driven.app().n_errors() >= 1);  // 2 if the button was clicked before the model was refused
    for (const auto& notice : form.driven.app().notices()) CHECK(notice.find("nothing.gguf") != std::string::npos);
    CHECK(form.driven.session().documents().empty());
    CHECK(!fs::exists(form.folder / "run.h5"));
    CHECK(form.driven.app().engine()->status().model_path == small_model);
}

}  // namespace kvscope::gui::testing

#endif
