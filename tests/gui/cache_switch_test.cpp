// Tests of the buttons that compress a run's cache or make it full, clicked in the middle of its answer.
#ifdef KVSCOPE_WITH_ENGINE

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>

#include "app/gui/session/engine_session.h"
#include "app/gui/view_data/run_form.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/held_steps.h"
#include "tests/gui/session_with_engine.h"
#include "tests/gui/small_model.h"
#include "tests/skip.h"
#include "trace/checks/check_trace.h"
#include "trace/reader.h"
#include "trace/records/schema.h"

namespace kvscope::gui::testing {
namespace {

RunForm echo_form(const fs::path& output, const std::string& maps) {
    RunForm form;
    for (PolicyRow& row : form.rows) {
        row.ticked = row.spec.definition->name == "echokv" || row.spec.definition->name == "snapkv";
        if (row.spec.definition->name == "snapkv") row.spec.values.set("window", "8");
        if (row.spec.definition->name != "echokv") continue;
        row.spec.values.set("recent", "9");
        row.spec.values.set("maps", maps);
    }
    form.request.context = text;
    form.request.budgets = "16";
    form.request.options.n_new = 24;
    form.request.options.ignore_eos = true;
    form.request.output = output;
    return form;
}

AppOptions explore() {
    AppOptions options;
    options.layout = "explore";
    return options;
}

}  // namespace

TEST_CASE("Make full is visible in the layout Explore and disabled once the run is cancelled") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    HeldWindow held(explore());
    DrivenApp& driven = held.driven;
    EngineSession& engine = held.engine();
    HeldSteps& steps = held.steps;
    driven.app().show_view(*find_view_kind("run"));
    driven.settle();
    for (const auto& open : driven.app().views()) {
        if (open->kind->name == "run") open->view->load(echo_form(held.folder / "run.h5", held.maps.path()).to_json());
    }
    steps.allow(3);
    driven.drive([&](ImGuiTestContext& c) { c.ItemClick("//run-1/Run"); });
    held.wait_after(3);
    ImGuiTestItemInfo button;
    ImRect view;
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef("//run-1");
        button = c.ItemInfo("**/Make full");
        view = c.WindowInfo("//run-1").Window->InnerRect;
    });
    CHECK(view.Contains(button.RectFull));
    CHECK(button.RectClipped.GetWidth() == button.RectFull.GetWidth());
    CHECK(button.RectClipped.GetHeight() == button.RectFull.GetHeight());
    CHECK((button.ItemFlags & ImGuiItemFlags_Disabled) == 0);
    engine.cancel();
    bool has_reason = false;
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef("//run-1");
        c.Yield(2);
        button = c.ItemInfo("**/Make full");
        c.MouseMove("**/Make full");
        c.SleepNoSkip(2, 0.1f);
        const ImGuiWindow* tooltip = c.GetWindowByRef("//##Tooltip_00");
        has_reason = tooltip && tooltip->Active && !tooltip->Hidden;
    });
    CHECK((button.ItemFlags & ImGuiItemFlags_Disabled) != 0);
    CHECK(has_reason);
    steps.allow_all();
    REQUIRE(driven.draw_until([&] { return !engine.status().busy(); }, patience));
}

TEST_CASE("Answers comes to the front while answers stream, and a cancelled run keeps its decoded tokens") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    HeldWindow held(explore());
    DrivenApp& driven = held.driven;
    EngineSession& engine = held.engine();
    HeldSteps& steps = held.steps;
    driven.app().show_view(*find_view_kind("run"));
    driven.settle();
    RunForm form = echo_form(held.folder / "run.h5", held.maps.path());
    form.request.questions = {"What does the fox find?"};
    for (const auto& open : driven.app().views()) {
        if (open->kind->name == "run") open->view->load(form.to_json());
    }
    const auto is_in_front = [] {
        const ImGuiWindow* answers = ImGui::FindWindowByName("Answers###answers-1");
        return answers && answers->DockTabIsVisible;
    };
    CHECK(!is_in_front());
    steps.allow(3);
    driven.drive([&](ImGuiTestContext& c) { c.ItemClick("//run-1/Run"); });
    REQUIRE(driven.draw_until([&] { return steps.waits_behind(3) && engine.partial_answers().size() == 3; }, patience));
    driven.settle();
    CHECK(is_in_front());
    std::map<std::string, std::string> so_far;
    for (const PartialAnswer& answer : engine.partial_answers()) {
        REQUIRE(driven.session().exists(answer.key));
        CHECK(driven.session().attributes(answer.key).label == answer.label);
        CHECK(!answer.text.empty());
        so_far[answer.label] = answer.text;
    }
    const std::string streamed = driven.shown_text();
    CAPTURE(streamed);
    for (const auto& [label, text_of_run] : so_far) CHECK(streamed.find(text_of_run) != std::string::npos);
    engine.cancel();
    steps.allow_all();
    REQUIRE(driven.draw_until([&] { return !engine.status().busy(); }, patience));
    driven.settle();
    for (const RunKey& run : driven.session().visible_runs()) {
        const trace::RunAttributes& attributes = driven.session().attributes(run);
        CAPTURE(attributes.label);
        CHECK(attributes.output_text.starts_with(so_far.at(attributes.label)));
        CHECK(attributes.message.starts_with("cancelled: "));
    }
    CHECK(driven.shown_text().find("tokens of its answer were decoded") != std::string::npos);
}

TEST_CASE("new answers scroll into view below those of other traces until the user scrolls") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    HeldWindow held(explore());
    DrivenApp& driven = held.driven;
    for (int i = 0; i < 4; ++i) {
        const fs::path other = held.folder / fmt::format("other-{}.h5", i);
        trace::sample::write(other);
        driven.session().open(other);
    }
    driven.app().show_view(*find_view_kind("run"));
    driven.settle();
    RunForm form = echo_form(held.folder / "run.h5", held.maps.path());
    form.request.questions = {"What does the fox find?"};
    for (const auto& open : driven.app().views()) {
        if (open->kind->name == "run") open->view->load(form.to_json());
    }
    held.steps.allow(3);
    driven.drive([&](ImGuiTestContext& c) { c.ItemClick("//run-1/Run"); });
    held.wait_after(3);
    const auto is_in_view = [&](const PartialAnswer& answer) {
        const ImGuiWindow* outputs = nullptr;
        ImGuiTestItemInfo label;
        driven.drive([&](ImGuiTestContext& c) {
            outputs = c.WindowInfo("//answers-1/outputs").Window;
            c.SetRef(outputs->ID);
            label = c.ItemInfo((answer.key.text() + "/run").c_str());
        });
        return outputs->InnerClipRect.Contains(label.RectFull.Min);
    };
    const std::vector<PartialAnswer> answers = held.engine().partial_answers();
    REQUIRE(answers.size() == 3);
    for (const PartialAnswer& answer : answers) CHECK(is_in_view(answer));

    driven.drive([&](ImGuiTestContext& c) { c.ScrollToTop(c.WindowInfo("//answers-1/outputs").ID); });
    held.steps.allow(6);
    held.wait_after(6);
    CHECK_FALSE(is_in_view(answers[0]));
    held.let_it_end();
}

TEST_CASE("a what-if has no answer during the trace's run or after its cancellation, and says how to get one") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    AppOptions options;
    options.view = "answers";
    HeldWindow held(options);
    DrivenApp& driven = held.driven;
    RunRequest request = SessionWithEngine("what-if").request({"snapkv:window=8"}, "16");
    request.policies.push_back(fmt::format("echokv:recent=9,maps={}", held.maps.path()));
    request.options.n_new = 24;
    request.options.ignore_eos = true;
    request.output = held.folder / "run.h5";
    held.steps.allow(3);
    REQUIRE(held.engine().run(request) != 0);
    held.wait_after(3);
    REQUIRE(driven.session().documents().size() == 1);
    Document& document = *driven.session().documents()[0];
    trace::RunRecord record = document.reader()->run_record(0, 1);
    record.label += " (what-if)";
    document.add_run(0, std::move(record), document.id_of(0, 1));
    driven.settle();
    const auto says_how = [&] {
        const std::string shown = driven.shown_text();
        CAPTURE(shown);
        CHECK(shown.find("Decode in What-if generates an answer") != std::string::npos);
        CHECK(shown.find("the answer appears while it is decoded") == std::string::npos);
        CHECK(shown.find("Repeat the command that started it") == std::string::npos);
    };
    says_how();
    held.engine().cancel();
    held.let_it_end();
    driven.settle();
    says_how();
}

TEST_CASE("Make full and Compress change the cache in the middle of an answer") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    AppOptions options;
    options.view = "run";
    HeldWindow held(options);
    DrivenApp& driven = held.driven;
    EngineSession& engine = held.engine();
    HeldSteps& steps = held.steps;
    driven.app().dismiss_start();
    const fs::path output = held.folder / "switched.h5";
    driven.app().views()[0]->view->load(echo_form(output, held.maps.path()).to_json());

    /// Returns false if the run ends first.
    const auto draw_until = [&](const std::function<bool()>& condition) {
        driven.draw_until([&] { return condition() || !engine.status().busy(); }, patience);
        return condition();
    };
    const auto is_full = [&]() -> std::optional<bool> {
        for (const PartialAnswer& answer : engine.partial_answers())
            if (answer.is_full) return answer.is_full;
        return std::nullopt;
    };
    const auto has_button = [&](const char* label) {
        bool found = false;
        driven.drive([&](ImGuiTestContext& c) {
            c.SetRef("//run-1");
            found = c.ItemExists(fmt::format("**/{}", label).c_str());
        });
        return found;
    };
    const auto click = [&](const char* label) {
        driven.drive([&](ImGuiTestContext& c) {
            c.SetRef("//run-1");
            c.ItemClick(fmt::format("**/{}", label).c_str());
            c.Yield(2);
        });
    };
    constexpr int made_full = 5, compressed = 11, twice = 17;

    steps.allow(made_full);
    driven.drive([&](ImGuiTestContext& c) { c.ItemClick("//run-1/Run"); });
    REQUIRE(draw_until([&] { return steps.waits_behind(made_full) && is_full() == false; }));
    driven.settle();
    CHECK(engine.status().busy());
    CHECK(has_button("Make full"));
    CHECK_FALSE(has_button("Compress"));
    click("Make full");
    REQUIRE(draw_until([&] { return is_full() == true; }));

    steps.allow(compressed);
    REQUIRE(draw_until([&] { return steps.waits_behind(compressed); }));
    driven.settle();
    CHECK(is_full() == true);
    CHECK_FALSE(has_button("Make full"));
    click("Compress");

    // A second click before the next step cancels the first.
    steps.allow(twice);
    REQUIRE(draw_until([&] { return steps.waits_behind(twice) && is_full() == false; }));
    driven.settle();
    click("Make full");
    click("Compress");

    steps.allow_all();
    REQUIRE(driven.draw_until([&] { return !engine.status().busy(); }, patience));
    driven.settle();
    CHECK(driven.app().n_errors() == 0);
    const trace::Reader reader(output);
    for (int run = 0; run < reader.n_runs(0); ++run) {
        CAPTURE(reader.run(0, run).label);
        const auto record = reader.run_record(0, run);
        CHECK(record.status == trace::schema::run::status_complete);
        CHECK(record.output_ids.size() == 24);
        const bool is_echo = record.policy == "echokv";
        CHECK(record.switch_steps ==
              (is_echo ? std::vector<uint32_t>{made_full, compressed} : std::vector<uint32_t>{}));
        CHECK(record.switch_is_full == (is_echo ? std::vector<uint8_t>{1, 0} : std::vector<uint8_t>{}));
    }
    CHECK(trace::find_problems(output).empty());

    driven.app().show_view(*find_view_kind("answers"));
    driven.settle();
    CHECK(driven.shown_text().find("after step 5 the cache became full; after step 11 compressed") !=
          std::string::npos);
}

}  // namespace kvscope::gui::testing

#endif
