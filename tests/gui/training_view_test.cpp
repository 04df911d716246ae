#ifdef KVSCOPE_WITH_ENGINE

#include <imgui_internal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "analysis/shell_command.h"
#include "app/gui/session/engine_session.h"
#include "app/gui/view_data/run_form.h"
#include "common/json.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/session_with_engine.h"
#include "tests/gui/small_model.h"
#include "tests/skip.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui::testing {
namespace {

/// A single view with the small model.
struct OnSmallModel {
    DrivenApp driven;

    explicit OnSmallModel(const char* view) : driven(options(view)) {
        driven.app().dismiss_start();
        REQUIRE(driven.draw_until([&] { return engine().status().model_path == small_model; }, patience));
        driven.settle();
    }
    static AppOptions options(const char* view) {
        AppOptions options;
        options.view = view;
        options.traces = {small_model};
        return options;
    }
    EngineSession& engine() { return *driven.app().engine(); }
    bool wait_for_engine() {
        return driven.draw_until([&] { return !engine().status().busy(); }, patience);
    }
};

void write_words(const fs::path& path, int n) {
    std::ofstream file(path);
    for (int i = 0; i < n; ++i) file << i << ". " << text << "\n";
}

}  // namespace

TEST_CASE("maps are trained by mouse: form, Cancel, Continue, loss and policy") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    write_words(folder / "words.txt", 60);
    const fs::path maps = folder / "it's maps.safetensors";
    OnSmallModel window("training");
    const auto fill = [&](const char* steps) {
        window.driven.drive([&](ImGuiTestContext& c) {
            c.SetRef("//training-1");
            c.ItemInputValue("##text", (folder / "words.txt").c_str());
            c.ComboClick("##Stage 1/gradient descent");
            c.ItemInputValue("##Steps of stage 1", steps);
            c.ItemInputValue("##output", maps.c_str());
        });
    };
    const auto click = [&](const char* button) {
        window.driven.drive([&](ImGuiTestContext& c) {
            c.SetRef("//training-1");
            c.ItemClick(button);
            c.Yield(2);
        });
    };
    fill("100000");
    click("Train");
    REQUIRE(window.driven.draw_until(
        [&] {
            const auto& stages = window.engine().training().stages;
            return !stages.empty() && stages.front().errors.size() > 3;
        },
        patience));
    CHECK(window.engine().status().busy());
    click("Cancel##training");
    REQUIRE(window.wait_for_engine());
    window.driven.settle();
    CHECK(!window.engine().training().is_done);
    CHECK(!fs::exists(maps));

    fill("12");
    std::string command;
    window.driven.drive([&](ImGuiTestContext& c) {
        c.SetRef("//training-1");
        c.ItemClick("Copy command");
        c.Yield(2);
        command = ImGui::GetClipboardText();
    });
    for (const std::string& part :
         {std::string("kvscope train-echo"), (folder / "words.txt").string(), analysis::shell_quoted(maps.string()),
          std::string("--stage1 adamw --steps 12"), small_model.string()})
        CHECK(command.find(part) != std::string::npos);
    click("Train");
    REQUIRE(window.wait_for_engine());
    window.driven.settle();
    const TrainingStatus& training = window.engine().training();
    CHECK(training.is_done);
    REQUIRE(training.stages.size() == 1);
    CHECK(training.stages[0].errors.size() == 12);
    CHECK(fs::is_regular_file(maps));
    std::string policy;
    window.driven.drive([&](ImGuiTestContext& c) {
        c.SetRef("//training-1");
        c.ItemClick("Copy the policy");
        c.Yield(2);
        policy = ImGui::GetClipboardText();
        // The maps exist and must not be replaced.
        IM_CHECK((c.ItemInfo("Train").ItemFlags & ImGuiItemFlags_Disabled) != 0);
    });
    CHECK(policy == "echokv:maps=" + maps.string());
    CHECK(window.driven.shown_text().find("already exists") == std::string::npos);
    click("Use in Run");
    window.driven.settle();
    const auto& open = window.driven.app().views();
    const auto run = std::find_if(open.begin(), open.end(), [](const auto& one) { return one->kind->name == "run"; });
    REQUIRE(run != open.end());
    nlohmann::json state;
    (*run)->view->save(state);
    RunForm form;
    form.from_json(state);
    for (const PolicyRow& row : form.rows) {
        if (row.spec.definition->name != "echokv") continue;
        CHECK(row.ticked);
        CHECK(row.spec.values.text("maps") == maps.string());
    }
    CHECK(window.driven.app().n_errors() == 0);
}

TEST_CASE("the view Training gives the reason for a failed training, not for other failed jobs") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    OnSmallModel window("training");
    const auto n_shown = [&](const std::string& text) {
        const std::string all = window.driven.shown_text();
        size_t n = 0;
        for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++n;
        return n;
    };
    TrainingRequest request;
    request.texts = {folder / "no such text.txt"};
    request.output = folder / "maps.safetensors";
    window.engine().train(request);
    REQUIRE(window.wait_for_engine());
    window.driven.settle();
    CHECK(n_shown("no such text") == 2);  // in the view and as a notice
    window.engine().load_model(folder / "no such model.gguf");
    REQUIRE(window.wait_for_engine());
    window.driven.settle();
    CHECK(n_shown("no such model") == 1);
    CHECK(n_shown("no such text") == 2);
}

TEST_CASE("the view Run gives the reason for its failed run, not for other failed jobs") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    OnSmallModel window("run");
    const auto shows = [&](const std::string& text) {
        bool is_shown = false;
        const std::string all = window.driven.shown_text();
        // Position in the view, not in the notices.
        const size_t at = all.find(text);
        const size_t form = all.find("Model", all.find("Copy command"));
        is_shown = at != std::string::npos && at < form;
        return is_shown;
    };
    TrainingRequest request;
    request.texts = {folder / "no such text.txt"};
    request.output = folder / "maps.safetensors";
    window.engine().train(request);
    REQUIRE(window.wait_for_engine());
    window.driven.settle();
    CHECK(window.engine().status().error.find("no such text") != std::string::npos);
    CHECK(!shows("no such text"));
    RunForm form;
    for (PolicyRow& row : form.rows) row.ticked = row.spec.definition->name == "h2o";
    form.request.context = text;
    form.request.budgets = "16";
    std::ofstream(folder / "run.h5") << "another file, which the run does not replace";
    form.request.output = folder / "run.h5";
    window.driven.app().views()[0]->view->load(form.to_json());
    window.driven.settle();
    window.driven.drive([&](ImGuiTestContext& c) { c.ItemClick("//run-1/Run"); });
    REQUIRE(window.wait_for_engine());
    window.driven.settle();
    const std::string why = window.engine().status().error;
    REQUIRE(!why.empty());
    CHECK(shows(why.substr(0, 20)));
    window.engine().load_model(folder / "no such model.gguf");
    REQUIRE(window.wait_for_engine());
    window.driven.settle();
    CHECK(shows(why.substr(0, 20)));
}

}  // namespace kvscope::gui::testing

#endif
