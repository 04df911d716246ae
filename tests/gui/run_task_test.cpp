// Tests of benchmark tasks in the Run form.
#ifdef KVSCOPE_WITH_ENGINE

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <tuple>
#include <utility>

#include "app/gui/engine/jobs_to_run.h"
#include "common/json.h"
#include "engine/tasks/api/task.h"
#include "tests/gui/driven_form.h"
#include "tests/gui/session_with_engine.h"
#include "tests/gui/small_model.h"
#include "tests/skip.h"
#include "trace/reader.h"

namespace kvscope::gui::testing {
namespace {

/// Chooses a task of the form with these parameters.
void choose(RunForm& form, const std::string& name, const std::vector<std::pair<std::string, std::string>>& values) {
    for (size_t i = 0; i < form.tasks.size(); ++i) {
        if (form.tasks[i].task->name != name) continue;
        form.choose_task(i);
        for (const auto& [parameter, text] : values) form.tasks[i].values.set(parameter, text);
    }
    REQUIRE(form.task());
}

/// A form with the small model's needle task, H2O and one budget.
RunForm task_form(const fs::path& output, int n_samples) {
    RunForm form = small_form(output);
    choose(form, "niah", {{"lengths", "150"}, {"depths", "0.5"}, {"samples", std::to_string(n_samples)}});
    form.request.budgets = "32";
    form.request.options.n_new = 2;
    form.request.model = small_model;
    return form;
}

using Row = std::tuple<std::string, std::string, int64_t, std::string, double>;

std::vector<Row> results(const fs::path& trace, const std::string& task = "niah") {
    std::vector<Row> rows;
    for (const auto& row : trace::Reader(trace).results(task))
        rows.emplace_back(row.sample_id, row.policy, row.budget, row.prediction, row.score);
    return rows;
}

void run_command(const RunForm& form) {
    const std::string command = form.command(small_model);
    const std::string program = "kvscope ";
    REQUIRE(command.starts_with(program));
    const std::string log = form.request.output.string() + ".log";
    const int status = std::system(
        (std::string("'") + KVSCOPE_BINARY + "' " + command.substr(program.size()) + " --quiet >'" + log + "' 2>&1")
            .c_str());
    std::ifstream text(log);
    INFO(command);
    INFO(std::string(std::istreambuf_iterator<char>(text), {}));
    REQUIRE(WEXITSTATUS(status) == 0);
}

void require_no_errors(const SessionWithEngine& gui) {
    for (const auto& error : gui.errors) UNSCOPED_INFO(error);
    REQUIRE(gui.errors.empty());
}

}  // namespace

TEST_CASE("a task gives the same trace and scores as the copied kvscope eval command") {
    SessionWithEngine gui("task");
    RunForm form = task_form(gui.folder / "app.h5", 2);
    std::string task = "niah";
    SECTION("needles") {
        form.request.options.query_aware = false;
        form.request.options.dtype = "f32";
    }
    SECTION("own samples") {
        task = "jsonl";
        std::ofstream(gui.folder / "it's own.jsonl")
            << R"({"context": "Rain falls in Oslo and in Bergen all day long.", "question": "Where?", "answers": ["a", "e"]})";
        choose(form, task, {{"file", gui.folder / "it's own.jsonl"}});
        form.request.budgets = "16";
        form.request.options.use_template = false;
    }
    form.request.options.temperature = 0.5;  // applies only to prompts
    form.request.options.isolated = true;
    const program::RunJob job = make_run_job(form.filled_in());
    CHECK(job.task == &engine::task_named(task));
    CHECK(job.prompts.empty());
    CHECK(job.task_values == form.task()->values);
    CHECK(!job.experiment.compare);
    CHECK(!job.experiment.record);
    CHECK(!job.experiment.isolated);
    CHECK(job.experiment.temperature == 0);
    gui.engine->run(form.filled_in());
    gui.until_idle();
    require_no_errors(gui);
    CHECK(gui.session.wanted_view == "task_scores");
    REQUIRE(gui.session.documents().size() == 1);
    CHECK(gui.session.documents()[0]->reader()->result_tasks() == std::vector{task});
    const fs::path of_app = form.request.output;
    form.request.output = gui.folder / "command.h5";
    run_command(form);
    CHECK(trace::Reader(of_app).recipe_json() == trace::Reader(form.request.output).recipe_json());
    const auto found = results(of_app, task);
    CHECK(found.size() == (task == "niah" ? 4 : 2));
    CHECK(found == results(form.request.output, task));
}

TEST_CASE("a cancelled task shows its finished samples, continues, and accepts more samples") {
    SessionWithEngine gui("task-cancel");
    const int n_samples = 40;
    RunForm form = task_form(gui.folder / "t.h5", n_samples);
    const fs::path part = gui.folder / "t.h5.part";
    const bool from_disk = GENERATE(false, true);
    CAPTURE(from_disk);
    REQUIRE(gui.engine->run(form.filled_in()) != 0);
    std::string what;
    bool saw_seconds = false;
    for (int i = 0; i < patience && gui.engine->status().busy(); ++i) {
        gui.frame();
        const EngineStatus status = gui.engine->status();
        saw_seconds = saw_seconds || status.seconds_left > 0;
        if (status.phase == "sample 4 of 40" && status.share > 0) {
            what = status.what;
            CHECK(status.share == Approx(3.0 / n_samples));
            gui.engine->cancel();
            break;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    gui.until_idle();
    require_no_errors(gui);
    CHECK(what == "t.h5: 2 runs per sample of niah");
    CHECK(saw_seconds);
    REQUIRE_FALSE(fs::exists(form.request.output));
    REQUIRE(gui.engine->stopped_run());
    CHECK_THAT(gui.engine->stopped_run()->rest, Catch::Contains("continues where it stopped (sample "));
    REQUIRE(gui.session.documents().size() == 1);
    const auto before = results(part);
    CHECK(before.size() >= 6);
    CHECK(before.size() < 2 * n_samples);
    CHECK(std::exchange(gui.session.wanted_view, {}) == "task_scores");
    if (from_disk) {
        // Another model ends the paused run.
        gui.engine->load_model(fs::path(KVSCOPE_TEST_DATA) / "models" / "llama2-mha");
        gui.until_idle();
        REQUIRE(gui.engine->stopped_run());
        CHECK_THAT(gui.engine->stopped_run()->rest, Catch::Contains("Finished samples are kept"));
    }
    CHECK(gui.engine->continue_stopped_run() != 0);
    gui.until_idle();
    require_no_errors(gui);
    REQUIRE(fs::exists(form.request.output));
    const auto whole = results(form.request.output);
    CHECK(whole.size() == 2 * n_samples);
    for (const Row& row : before) CHECK(std::find(whole.begin(), whole.end(), row) != whole.end());
    CHECK(std::exchange(gui.session.wanted_view, {}) == "task_scores");

    choose(form, "niah", {{"samples", std::to_string(n_samples + 1)}});
    gui.engine->run(form.filled_in());
    gui.until_idle();
    require_no_errors(gui);
    CHECK(results(form.request.output).size() == 2 * (n_samples + 1));
    REQUIRE(gui.session.documents().size() == 1);
    CHECK(gui.session.documents()[0]->reader()->results("niah").size() == 2 * (n_samples + 1));
    gui.engine->run(form.filled_in());  // nothing to do
    gui.until_idle();
    require_no_errors(gui);
    CHECK_THAT(gui.notices.back(), Catch::Contains("already contains"));
}

TEST_CASE("errors of a task are messages of its job, and leave no unfinished trace") {
    SessionWithEngine gui("task-errors");
    RunForm form = task_form(gui.folder / "t.h5", 1);
    std::string expected;
    SECTION("a context that is too small") {
        choose(form, "niah", {{"lengths", "1000000"}});
        expected = "--lengths 1000000: the model's context is ";
    }
    SECTION("budgets that no policy can use") {
        choose(form, "niah", {{"lengths", "150"}});
        for (PolicyRow& row : form.rows) row.ticked = row.spec.definition->name == "snapkv";
        form.request.budgets = "16";
        expected = "snapkv";
    }
    SECTION("a line that is no sample") {
        std::ofstream(gui.folder / "own.jsonl") << "[1]";
        choose(form, "jsonl", {{"file", gui.folder / "own.jsonl"}});
        expected = "own.jsonl:1: expected an object";
    }
    SECTION("a file that was removed") {
        choose(form, "jsonl", {{"file", gui.folder / "gone.jsonl"}});
        expected = "gone.jsonl does not exist";
    }
    const uint64_t job = gui.engine->run(form.filled_in());
    gui.until_idle();
    REQUIRE(gui.errors.size() == 1);
    CHECK_THAT(gui.errors[0], Catch::Contains(expected));
    CHECK_THAT(gui.engine->error_of(job), Catch::Contains(expected));
    CHECK_FALSE(fs::exists(gui.folder / "t.h5.part"));
    CHECK(gui.session.documents().empty());
    CHECK(gui.session.wanted_view.empty());
}

TEST_CASE("an unfinished trace of a task says why it is not continued without the form") {
    SessionWithEngine gui("task-go-on");
    RunForm form = task_form(gui.folder / "t.h5", 40);
    gui.engine->run(form.filled_in());
    while (gui.engine->status().busy() && gui.engine->status().phase != "sample 3 of 40") gui.frame();
    gui.engine->cancel();
    gui.until_idle();
    gui.engine.reset();
    SessionWithEngine later("task-later");
    later.known_models = {small_model};
    CHECK(later.engine->go_on(form.request.output) == 0);
    REQUIRE(later.errors.size() == 1);
    CHECK_THAT(later.errors[0], Catch::Contains("samples of a task"));
}

TEST_CASE("by mouse: a task is chosen, run, and its scores are shown") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    AppOptions options;
    options.traces = {small_model};
    options.view = "run";
    DrivenApp driven(options);
    const auto& engine = *driven.app().engine();
    REQUIRE(driven.draw_until([&] { return engine.status().model_path == small_model; }, patience));
    View* view = nullptr;
    for (const auto& open : driven.app().views())
        if (open->kind->name == "run") view = open->view.get();
    REQUIRE(view);
    RunForm form = small_form(folder / "t.h5");
    form.request.options.n_new = 64;
    view->load(form.to_json());
    driven.settle();
    const auto state = [&] {
        nlohmann::json now;
        view->save(now);
        return now;
    };
    const auto choose_in_list = [&](const char* choice) {
        driven.drive([&](ImGuiTestContext& c) {
            c.SetRef(c.WindowInfo("//run-1/text").Window);  // the left column
            c.ComboClick(choice);
            c.Yield(2);
        });
    };
    const auto is_refused = [&] {
        bool refused = false;
        driven.drive([&](ImGuiTestContext& c) {
            refused = (c.ItemInfo("//run-1/Run").ItemFlags & ImGuiItemFlags_Disabled) != 0;
        });
        return refused;
    };
    CHECK(!state().contains("task"));
    choose_in_list("##task/Task jsonl");
    CHECK(state()["task"] == "jsonl");
    CHECK(is_refused());
    CHECK(driven.shown_text().find("The task jsonl needs a file: set file.") != std::string::npos);
    choose_in_list("##task/Task niah");
    CHECK(state()["task"] == "niah");
    CHECK(state()["new_tokens"] == 24);
    CHECK(driven.shown_text().find("A needle in a haystack") != std::string::npos);
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef("//run-1");
        CHECK(!c.ItemExists("**/##context"));
        c.ItemInputValue("**/lengths/##value", "150");
        c.ItemInputValue("**/depths/##value", "0.5");
        c.ItemInputValue("**/samples/##value", 2);
        c.Yield(2);
    });
    CHECK(state()["tasks"]["niah"]["lengths"] == "150");
    CHECK(state()["tasks"]["niah"]["samples"] == "2");
    CHECK(!is_refused());
    std::string copied;
    driven.drive([&](ImGuiTestContext& c) {
        c.ItemClick("//run-1/Copy command");
        c.Yield(2);
        copied = ImGui::GetClipboardText();
        c.ItemClick("//run-1/Run");
    });
    CHECK_THAT(copied, Catch::Contains("kvscope eval") && Catch::Contains("--task niah --lengths 150 --depths 0.5"));
    REQUIRE(
        driven.draw_until([&] { return !driven.session().documents().empty() && !engine.status().busy(); }, patience));
    driven.settle();
    CHECK(engine.status().error.empty());
    const auto reader = driven.session().documents()[0]->reader();
    CHECK(reader->complete());
    CHECK(reader->results("niah").size() == 4);
    CHECK(
        std::ranges::any_of(driven.app().views(), [](const auto& open) { return open->kind->name == "task_scores"; }));
    CHECK_THAT(driven.shown_text(), Catch::Contains("random") || Catch::Contains("h2o"));
}

TEST_CASE("three clicks lead from a score to the trace of a sample") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    run_command(task_form(folder / "t.h5", 2));
    AppOptions options;
    options.traces = {small_model, folder / "t.h5"};
    DrivenApp driven(options);
    const auto& engine = *driven.app().engine();
    REQUIRE(driven.draw_until([&] { return engine.status().model_path == small_model; }, patience));
    driven.settle();
    driven.drive([&](ImGuiTestContext& c) {
        const ImRect plot = c.GetWindowByRef("//task_scores-1")->Rect();
        for (float share = 0.25f; share < 0.9f && !driven.session().wanted_samples; share += 0.05f) {
            c.MouseMoveToPos({plot.GetCenter().x, plot.Min.y + share * plot.GetHeight()});
            c.MouseClick();
        }
        c.Yield(20);
    });
    driven.settle();
    CHECK_THAT(driven.shown_text(), Catch::Contains("niah-150-0.5-0") && Catch::Contains("niah-150-0.5-1"));
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef(DrivenApp::window_of("Rankings###rankings").c_str());
        const ImRect row = c.ItemInfo("**/$$0/##ranked row").RectFull;
        c.MouseMoveToPos({row.Min.x + 40, row.GetCenter().y});
        c.MouseClick();
        c.Yield(2);
    });
    CHECK_THAT(driven.shown_text(), Catch::Contains("Expected") && Catch::Contains("Question"));
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef(DrivenApp::window_of("Rankings###rankings").c_str());
        c.ItemClick("**/Run this sample");
    });
    REQUIRE(driven.draw_until([&] { return driven.session().documents().size() == 2 && !engine.status().busy(); },
                              patience));
    driven.settle();
    CHECK(engine.status().error.empty());
    const auto of_sample = driven.session().documents()[1]->reader();
    REQUIRE(of_sample->n_prompts() == 1);
    CHECK(of_sample->prompt(0).name.starts_with("niah-150-0.5-"));
    CHECK(!driven.session().mark.empty());
    CHECK(of_sample->prompt(0).text.find(driven.session().mark) != std::string::npos);
    std::filesystem::remove(driven.session().documents()[1]->path());
}

}  // namespace kvscope::gui::testing

#endif
