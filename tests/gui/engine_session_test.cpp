#ifdef KVSCOPE_WITH_ENGINE

#include "app/gui/session/engine_session.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "analysis/drawing/figure_definition.h"
#include "analysis/runs/run_policy.h"
#include "analysis/what_if/what_if.h"
#include "app/gui/engine/job_progress.h"
#include "app/gui/engine/job_queue.h"
#include "app/gui/session/session.h"
#include "app/gui/view_data/live_what_if.h"
#include "app/gui/view_data/run_form.h"
#include "common/json.h"
#include "kernels/threads/team.h"
#include "tests/gui/session_with_engine.h"
#include "tests/policies/echo_maps_file.h"
#include "trace/checks/check_trace.h"
#include "trace/spectra_cache.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;

bool same_kept(const trace::Reader& reader, int a, int b) {
    const auto x = reader.kept(0, a);
    const auto y = reader.kept(0, b);
    return x->offsets == y->offsets && x->indices == y->indices;
}

}  // namespace

TEST_CASE("the engine's jobs use the requested number of threads") {
    JobProgress progress([] {});
    std::promise<int> n_threads;
    JobQueue queue(
        progress, [](const std::string&, bool) {}, [] {}, 3);
    queue.enqueue("count", [&] { n_threads.set_value(kernels::threads()); });
    CHECK(n_threads.get_future().get() == 3);
}

TEST_CASE("between two jobs the engine is not idle") {
    JobProgress progress([] {});
    JobQueue queue(
        progress, [](const std::string&, bool) {}, [] {}, 1);
    for (int round = 0; round < 3000; ++round) {
        std::atomic<bool> both_ended{false};
        queue.enqueue("first", [] {});
        queue.enqueue("second", [&] { both_ended = true; });
        while (queue.status().busy()) {
        }
        REQUIRE(both_ended);
    }
}

TEST_CASE("a run in the window is a complete trace, and its caches answer further questions") {
    testing::SessionWithEngine gui;
    gui.engine->run(gui.request({"snapkv:window=8", "h2o"}, "16,32"));
    gui.until_idle();
    REQUIRE(gui.errors.empty());
    REQUIRE(gui.session.documents().size() == 1);
    const Document& document = *gui.session.documents().front();
    CHECK(document.reader()->complete());
    CHECK(document.reader()->n_runs(0) == 5);
    CHECK(fs::is_regular_file(gui.folder / "run.h5"));
    CHECK(document.file()->n_runs(0) == 5);
    CHECK(gui.session.attributes(gui.session.cursor().run).policy != "full");
    CHECK(gui.engine->prefill(document.id(), 0) != nullptr);

    const RunKey run = document.key_of(0, 1);
    CHECK(gui.engine->has_cache(run));
    gui.session.close(document.id());
    gui.frame();
    CHECK(!gui.engine->has_cache(run));
}

TEST_CASE("a cache changes its form on request, and the trace records the step") {
    testing::SessionWithEngine gui;
    gui.engine->run(gui.request({"snapkv:window=8"}, "16"));
    gui.until_idle();
    const auto model = gui.session.documents().front()->reader()->model();
    const policies::EchoLayout layout{static_cast<int>(model.n_layers), static_cast<int>(model.n_kv_heads),
                                      static_cast<int>(model.head_dim), 2, 4};
    const policies::test::EchoMapsFile maps(layout, model.fingerprint);
    auto wanted = gui.request({"snapkv:window=8", "echokv:recent=9,maps=" + maps.path()}, "16");
    wanted.output = gui.folder / "switched.h5";
    wanted.options.n_new = 300;
    wanted.options.ignore_eos = true;
    gui.engine->run(wanted);
    bool is_asked = false;
    while (gui.engine->status().busy()) {
        gui.frame();
        gui.engine->switch_cache(1);  // snapkv has only one form
        for (const auto& answer : gui.engine->partial_answers()) {
            if (!answer.is_full) continue;
            CHECK(answer.label.starts_with("echokv"));
            if (std::exchange(is_asked, true)) continue;
            CHECK(!*answer.is_full);
            gui.engine->switch_cache(answer.run);
            break;  // the answers change in the next frame
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    gui.frame();
    REQUIRE(gui.errors.empty());
    const trace::Reader reader(wanted.output);
    const auto record = reader.run_record(0, reader.n_runs(0) - 1);
    CAPTURE(record.label, record.message);
    CHECK(record.policy == "echokv");
    REQUIRE(record.switch_steps.size() == 1);
    CHECK(record.switch_is_full.front() == 1);
    CHECK(reader.run_record(0, 1).switch_steps.empty());
    CHECK(trace::find_problems(wanted.output).empty());
    gui.engine->switch_cache(2);  // no run in progress
}

TEST_CASE("EchoKV's maps are trained in the app, step by step, and used by a run") {
    testing::SessionWithEngine gui;
    gui.engine->load_model(gui.request({}, "").model);
    gui.until_idle();
    std::string words;
    for (int i = 0; i < 12; ++i) words += std::to_string(i) + ". " + testing::text + "\n";
    std::ofstream(gui.folder / "words.txt") << words;
    TrainingRequest request;
    request.texts = {gui.folder / "words.txt"};
    request.by_descent = true;
    request.steps = 5;
    request.tune_steps = 4;
    request.output = gui.folder / "maps.safetensors";
    gui.engine->train(request);
    CHECK(gui.engine->training().stages.empty());
    gui.until_idle();
    CHECK(gui.errors.empty());
    const TrainingStatus& training = gui.engine->training();
    CHECK(training.is_done);
    REQUIRE(training.stages.size() == 2);
    CHECK(training.stages[0].loss == "keys-values");
    CHECK(training.stages[0].errors.size() == 5);
    CHECK(training.stages[1].loss == "outputs");
    CHECK(training.stages[1].errors.size() == 4);
    CHECK(training.stages[0].errors[0] > 0);
    CHECK(training.messages.size() == 4);
    CHECK(fs::is_regular_file(request.output));
    CHECK(std::distance(fs::directory_iterator(gui.folder), {}) == 2);  // no other file is left

    gui.engine->run(gui.request({"echokv:recent=9,maps=" + request.output.string()}, "16"));
    gui.until_idle();
    REQUIRE(gui.session.documents().size() == 1);
    CHECK(gui.session.documents().front()->reader()->run(0, 1).status == "complete");

    gui.engine->train(request);  // the maps exist
    gui.until_idle();
    REQUIRE(gui.errors.size() == 1);
    CHECK_THAT(gui.errors[0], Catch::Matchers::Contains("maps.safetensors"));
    CHECK(!gui.engine->training().is_done);
    request.force = true;
    request.by_descent = false;
    request.tune_steps = 0;
    gui.engine->train(request);
    gui.until_idle();
    CHECK(gui.engine->training().is_done);
    CHECK(gui.engine->training().stages.empty());
}

TEST_CASE("a callback that throws does not prevent other callbacks") {
    JobProgress progress([] {});
    std::vector<std::string> told;
    JobQueue jobs(
        progress,
        [&](const std::string& text, bool is_error) {
            CHECK(is_error);
            told.push_back(text);
        },
        [] {});
    std::vector<int> order;
    std::atomic<bool> is_posted = false;
    const uint64_t job = jobs.enqueue("job", [&] {
        jobs.post([&] { order.push_back(1); });
        jobs.post([] { throw std::runtime_error("the trace is gone"); });
        jobs.post([] { throw 3; });
        jobs.post([&] { order.push_back(4); });
        is_posted = true;
    });
    while (!is_posted) std::this_thread::yield();
    jobs.deliver();
    CHECK(order == std::vector<int>{1, 4});
    REQUIRE(told.size() == 2);
    CHECK(told[0] == "the trace is gone");
    CHECK(jobs.error_of(job).empty());
}

TEST_CASE("queued runs without given files get different file names") {
    testing::SessionWithEngine gui;
    const fs::path before = fs::current_path();
    fs::current_path(gui.folder);
    for (const char* policy : {"snapkv:window=8", "snapkv:window=8", "streaming-llm"}) {
        auto wanted = gui.request({policy}, "16");
        wanted.output.clear();
        gui.engine->run(wanted);
    }
    gui.until_idle();
    fs::current_path(before);
    CHECK(gui.errors.empty());
    CHECK(gui.session.documents().size() == 3);
    for (const char* name : {"kvscope-1.h5", "kvscope-2.h5", "kvscope-3.h5"}) CHECK(fs::exists(gui.folder / name));
    CHECK(trace::Reader(gui.folder / "kvscope-3.h5").run(0, 1).policy == "streaming-llm");
}

TEST_CASE("the reason for a failed run is found by the run's number, whatever other jobs do") {
    testing::SessionWithEngine gui;
    auto wrong = gui.request({"snapkv"}, "64");
    wrong.model = gui.folder / "nothing.gguf";
    const uint64_t failed = gui.engine->run(wrong);
    const uint64_t fine = gui.engine->run(gui.request({"streaming-llm"}, "16"));
    gui.engine->load_model(gui.folder / "no such model.gguf");
    gui.until_idle();
    CHECK(failed != fine);
    CHECK(gui.engine->error_of(failed).find("nothing.gguf") != std::string::npos);
    CHECK(gui.engine->error_of(fine).empty());
    CHECK(gui.engine->status().error.find("no such model.gguf") != std::string::npos);
    CHECK(gui.engine->error_of(0).empty());
}

TEST_CASE("a cache does not change its form while its answer is compared") {
    testing::SessionWithEngine gui;
    gui.engine->run(gui.request({"snapkv:window=8"}, "16"));
    gui.until_idle();
    const auto model = gui.session.documents().front()->reader()->model();
    const policies::EchoLayout layout{static_cast<int>(model.n_layers), static_cast<int>(model.n_kv_heads),
                                      static_cast<int>(model.head_dim), 2, 4};
    const policies::test::EchoMapsFile maps(layout, model.fingerprint);
    auto wanted = gui.request({"echokv:recent=9,maps=" + maps.path()}, "16");
    wanted.output = gui.folder / "switched.h5";
    // The engine reports each change of its phase and waits here in the comparison, until the test watches.
    std::atomic<EngineSession*> watched = nullptr;
    std::atomic<bool> is_comparing = false;
    std::atomic<bool> may_go_on = false;
    const auto engine = make_engine_session(
        gui.session, [](const std::string& text, bool) { UNSCOPED_INFO(text); },
        [&] {
            const EngineSession* session = watched;
            if (may_go_on || !session || session->status().phase != "compare") return;
            is_comparing = true;
            while (!may_go_on) std::this_thread::yield();
        },
        [] { return std::vector<fs::path>(); }, 0,
        [&] {
            while (!watched) std::this_thread::yield();
        });
    engine->run(wanted);
    while (engine->status().state != EngineStatus::State::running) std::this_thread::yield();
    watched = engine.get();
    while (!is_comparing && engine->status().busy()) engine->update();
    CHECK(is_comparing);
    engine->update();
    gui.session.tasks.wait();
    engine->update();
    bool is_there = false;
    for (const auto& answer : engine->partial_answers()) {
        if (!answer.is_full) continue;
        is_there = true;
        CHECK(answer.has_ended);
        engine->switch_cache(answer.run);
    }
    CHECK(is_there);
    engine->update();
    for (const auto& answer : engine->partial_answers()) CHECK(!answer.is_full.value_or(false));
    may_go_on = true;
    while (engine->status().busy()) std::this_thread::yield();
    engine->update();
    CHECK(trace::Reader(wanted.output).run_record(0, 1).switch_steps.empty());
}

TEST_CASE("the reason why EchoKV has no what-if is shown once, even with a prefill in memory") {
    testing::SessionWithEngine gui;
    gui.engine->run(gui.request({"snapkv:window=8"}, "16"));
    gui.until_idle();
    const auto model = gui.session.documents().front()->reader()->model();
    const policies::EchoLayout layout{static_cast<int>(model.n_layers), static_cast<int>(model.n_kv_heads),
                                      static_cast<int>(model.head_dim), 2, 4};
    const policies::test::EchoMapsFile maps(layout, model.fingerprint);
    auto wanted = gui.request({"echokv:recent=9,maps=" + maps.path()}, "16");
    wanted.output = gui.folder / "echo.h5";
    gui.engine->run(wanted);
    gui.until_idle();
    Document& document = *gui.session.documents().back();
    gui.session.selection.select_run(document.key_of(0, 1));
    REQUIRE(gui.engine->prefill(document.id(), 0));
    LiveWhatIf what_if;
    gui.settle(what_if);
    const std::string why = analysis::obstacle_to_what_if(analysis::policy_of_run(document.reader()->run(0, 1)));
    REQUIRE(!why.empty());
    const std::string& said = what_if.refusal();
    CAPTURE(said);
    const size_t at = said.find(why);
    REQUIRE(at != std::string::npos);
    CHECK(said.find(why, at + 1) == std::string::npos);
}

TEST_CASE("a job that cannot run becomes a notice, and the next job runs") {
    testing::SessionWithEngine gui;
    auto wrong = gui.request({"snapkv"}, "64");
    wrong.model = gui.folder / "nothing.gguf";
    gui.engine->run(wrong);
    gui.until_idle();
    REQUIRE(gui.errors.size() == 1);
    CHECK(gui.errors[0].find("nothing.gguf") != std::string::npos);
    CHECK(gui.engine->status().error == gui.errors[0]);
    gui.engine->run(gui.request({"snapkv:window=8"}, "4"));  // must exceed the window
    gui.until_idle();
    CHECK(gui.errors.size() == 2);
    CHECK(gui.session.documents().empty());
    CHECK(!fs::exists(gui.folder / "run.h5.part"));
    gui.engine->run(gui.request({"streaming-llm"}, "16"));
    gui.until_idle();
    CAPTURE(gui.errors);
    CHECK(gui.errors.size() == 2);
    CHECK(gui.engine->status().error.empty());
    CHECK(gui.session.documents().size() == 1);
}

TEST_CASE("a run that fails alone is shown as failed beside the others") {
    testing::SessionWithEngine gui;
    gui.engine->run(gui.request({"snapkv:window=8"}, "4,16"));
    gui.until_idle();
    REQUIRE(gui.session.documents().size() == 1);
    const auto& reader = *gui.session.documents().front()->reader();
    REQUIRE(reader.n_runs(0) == 3);
    CHECK(reader.run(0, 1).status == "failed");
    CHECK(gui.session.at(gui.session.cursor().run).run == 2);
}

TEST_CASE("a cancellation is visible immediately and leaves the window unchanged") {
    testing::SessionWithEngine gui;
    gui.engine->run(gui.request({"snapkv:window=8"}, "16"));
    gui.engine->cancel();
    const auto state = gui.engine->status().state;
    CHECK((state == EngineStatus::State::idle || state == EngineStatus::State::cancelling));
    gui.until_idle();
    CHECK(gui.errors.empty());
}

TEST_CASE("a what-if follows its sliders, from the trace or from the prefill in memory") {
    testing::SessionWithEngine gui;
    gui.engine->run(gui.request({"snapkv:window=8", "snapkv:window=12"}, "16,24"));
    gui.until_idle();
    Document& document = *gui.session.documents().front();
    const auto run = [&](const std::string& label) {
        for (int i = 0; i < document.reader()->n_runs(0); ++i) {
            if (document.reader()->run(0, i).label.starts_with(label)) return i;
        }
        FAIL("no run " << label);
        return -1;
    };
    const bool from_trace = GENERATE(true, false);
    LiveWhatIf what_if;
    gui.session.selection.select_run(document.key_of(0, run("snapkv:window=8 @ 16")));
    const EngineSession* engine = from_trace ? nullptr : gui.engine.get();
    const auto settle = [&] {
        for (int i = 0; i < 4; ++i) {
            what_if.update(gui.session, engine);
            gui.session.tasks.wait();
        }
        what_if.update(gui.session, engine);
    };
    settle();
    REQUIRE(what_if.has_source());
    CHECK(what_if.refusal().empty());
    CHECK(!what_if.result(gui.session).valid());
    REQUIRE(what_if.recorded_summary());

    what_if.budget() = 24;
    settle();
    const RunKey result = what_if.result(gui.session);
    REQUIRE(result.valid());
    CHECK(same_kept(*document.reader(), gui.session.at(result).run, run("snapkv:window=8 @ 24")));
    CHECK(what_if.changed_summary()->n_entries > what_if.recorded_summary()->n_entries);
    CHECK(gui.session.look(result).label.find("what-if") != std::string::npos);
    CHECK(gui.session.pair.b == result);

    const auto& window = *std::find_if(what_if.definition().parameters.begin(), what_if.definition().parameters.end(),
                                       [](const auto& parameter) { return parameter.name == "window"; });
    CHECK(what_if.obstacle(window).empty() == !from_trace);
    CHECK(what_if.wants_prefill() == from_trace);
    if (!from_trace) {
        what_if.values().set("window", "12");
        settle();
        CHECK(same_kept(*document.reader(), gui.session.at(what_if.result(gui.session)).run,
                        run("snapkv:window=12 @ 24")));
        what_if.values().set("window", "8");
    }

    what_if.budget() = 5;  // must exceed the window
    settle();
    CHECK(what_if.error().find("budget") != std::string::npos);
    CHECK(what_if.result(gui.session).valid());

    what_if.budget() = 20;
    settle();
    CHECK(what_if.error().empty());
    what_if.keep(gui.session);
    settle();
    CHECK(!what_if.result(gui.session).valid());
    what_if.budget() = 22;
    settle();
    CHECK(document.reader()->n_runs(0) == document.file()->n_runs(0) + 2);
    gui.session.selection.select_run(what_if.result(gui.session));
    what_if.discard(gui.session);
    CHECK(gui.session.cursor().run == what_if.source());
    settle();
    CHECK(document.reader()->n_runs(0) == document.file()->n_runs(0) + 1);
    CHECK(document.reader()->run(0, document.file()->n_runs(0)).budget == 20);
    CHECK(what_if.budget() == 16);
    CHECK(gui.session.pair.b == document.key_of(0, document.file()->n_runs(0)));
}

TEST_CASE("a prefill is repeated from a trace's own tokens") {
    testing::SessionWithEngine gui;
    gui.engine->run(gui.request({"snapkv:window=8"}, "16"));
    gui.until_idle();
    gui.session.close(gui.session.documents().front()->id());
    const int id = gui.session.open(gui.folder / "run.h5").id();
    gui.frame();
    CHECK(gui.engine->prefill(id, 0) == nullptr);
    gui.engine->repeat_prefill(id, 0, {});
    gui.until_idle();
    REQUIRE(gui.errors.empty());
    const auto prefill = gui.engine->prefill(id, 0);
    REQUIRE(prefill);
    const auto& reader = *gui.session.document(id)->reader();
    const auto record = prefill->what_if(reader, 0, policies::parse_policy("snapkv:window=8"), 16,
                                         16.0 / static_cast<double>(reader.prompt(0).visible_tokens()), 0);
    const auto kept = reader.kept(0, 1);
    CHECK(record.kept_indices == kept->indices);
    CHECK(record.kept_offsets == kept->offsets);
}

TEST_CASE("a prefill can decide after its engine has ended") {
    testing::SessionWithEngine gui;
    gui.engine->run(gui.request({"snapkv:window=8"}, "16"));
    gui.until_idle();
    REQUIRE(gui.errors.empty());
    const Document& document = *gui.session.documents().front();
    const auto prefill = gui.engine->prefill(document.id(), 0);
    REQUIRE(prefill);
    // As on quit: a job still computes the result of the last slider position while the app closes.
    gui.engine.reset();
    const TaskSlot<trace::RunRecord> slot;
    const auto answer = [&] {
        return gui.session.tasks.ask(slot, "", "once", [prefill, reader = document.reader()] {
            return prefill->what_if(*reader, 0, policies::parse_policy("snapkv:window=8"), 16, 0.1, 0);
        });
    };
    answer();
    gui.session.tasks.wait();
    REQUIRE(answer().value);
    CHECK(answer().value->kept_indices == document.reader()->kept(0, 1)->indices);
}

TEST_CASE("a run includes cheap spectra, and missing spectra are computed later") {
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const std::string before = cache ? cache : "";
    testing::SessionWithEngine gui;
    setenv("XDG_CACHE_HOME", (gui.folder / "cache").c_str(), 1);
    auto without = gui.request({"snapkv:window=8"}, "16");
    without.spectra = false;
    gui.engine->run(without);
    gui.until_idle();
    REQUIRE(gui.errors.empty());
    CHECK(gui.engine->status().spectra_seconds > 0);
    Document& document = *gui.session.documents().front();
    analysis::FigureOptions options;
    const auto& figure = analysis::figure_definition("spectrum");
    CHECK_THROWS_AS(figure.make(*document.reader(), options), analysis::NothingToShow);
    CHECK(!trace::has_model_spectra(*document.reader()));
    const std::string stamp = document.stamp();
    gui.engine->compute_spectra(document.id());
    gui.until_idle();
    REQUIRE(gui.errors.empty());
    CHECK(document.stamp() != stamp);
    CHECK(trace::has_model_spectra(*document.reader()));
    CHECK(gui.engine->status().spectra_seconds == 0);
    const auto kept = figure.numbers(*document.reader(), options);
    CHECK(!document.reader()->has(trace::Place::of_model(), trace::schema::model::spectrum_q));

    auto with = gui.request({"snapkv:window=8"}, "16");
    with.output = gui.folder / "with.h5";
    gui.engine->run(with);
    gui.until_idle();
    REQUIRE(gui.session.documents().size() == 2);
    const auto& reader = *gui.session.documents().back()->reader();
    CHECK(reader.has(trace::Place::of_model(), trace::schema::model::spectrum_q));
    const auto stored = figure.numbers(reader, options);
    REQUIRE(stored.rows.size() == kept.rows.size());
    for (size_t i = 0; i < kept.rows.size(); ++i) CHECK(stored.rows[i].cells == kept.rows[i].cells);
    if (cache)
        setenv("XDG_CACHE_HOME", before.c_str(), 1);
    else
        unsetenv("XDG_CACHE_HOME");
}

TEST_CASE("tokens are counted during typing") {
    testing::SessionWithEngine gui;
    auto typed = gui.request({}, "");
    gui.engine->load_model(typed.model);
    gui.until_idle();
    std::optional<TokenCount> count;
    for (int i = 0; i < 60'000 && !count; ++i) {
        count = gui.engine->count_tokens(typed);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    REQUIRE(count);
    CHECK(count->error.empty());
    CHECK(count->n_tokens > 20);
    CHECK(count->context_length == 512);
}

TEST_CASE("the form reports errors and keeps its contents") {
    RunForm form;
    CHECK(form.problem({}).text.find("prompt") != std::string::npos);
    form.request.context = testing::text;
    for (auto& row : form.rows) row.ticked = false;
    CHECK(form.problem({}).text.find("policy") != std::string::npos);
    form.rows[0].ticked = true;
    CHECK(form.problem({}).text.empty());
    form.request.budgets = "0";
    CHECK(!form.problem({}).text.empty());
    form.request.budgets = "64-256*2";
    CHECK(form.n_runs() == 4);
    CHECK(form.budget_lines(TokenCount{100, 100, 512, {}})[0] ==
          "64 of 100 entries kept (64.0 %), 36 removed (36.0 %)");
    form.request.budgets = "14433";
    CHECK(form.budget_lines({})[0] == "14,433 entries kept per KV head");
    CHECK(form.budget_lines(TokenCount{20000, 20000, 32768, {}})[0] ==
          "14,433 of 20,000 entries kept (72.2 %), 5,567 removed (27.8 %)");
    form.request.budgets = "64-256*2";
    CHECK(!form.problem(TokenCount{500, 500, 512, {}}).text.empty());
    form.duplicate(0);
    CHECK(form.problem({}).text.find("twice") != std::string::npos);
    CHECK(form.remove(1));
    CHECK(!form.remove(0));

    RunForm again;
    again.from_json(form.to_json());
    CHECK(again.filled_in().policies == form.filled_in().policies);
    CHECK(again.request.budgets == form.request.budgets);
    for (const auto& [name, title] : sample_prompts()) {
        const auto sample = read_sample_prompt(name);
        CHECK(!sample.context.empty());
        CHECK(!sample.question.empty());
    }
}

}  // namespace kvscope::gui

#endif
