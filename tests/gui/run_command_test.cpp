#ifdef KVSCOPE_WITH_ENGINE

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "app/gui/view_data/run_form.h"
#include "common/json.h"
#include "tests/gui/driven_form.h"
#include "tests/gui/session_with_engine.h"
#include "tests/gui/small_model.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;

using testing::small_model;

/// Recipe of the trace written by the form's Run.
nlohmann::json recipe_of_window(const RunForm& form) {
    testing::SessionWithEngine gui("run-command");
    auto request = form.filled_in();
    request.model = small_model;
    gui.engine->run(request);
    gui.until_idle();
    for (const auto& error : gui.errors) UNSCOPED_INFO(error);
    REQUIRE(gui.errors.empty());
    return nlohmann::json::parse(trace::Reader(request.output).recipe_json());
}

/// Runs the copied command in a shell and returns its exit code.
int run_command(const RunForm& form) {
    const std::string command = form.command(small_model);
    const std::string program = "kvscope ";
    REQUIRE(command.starts_with(program));
    const int status = std::system((std::string("'") + KVSCOPE_BINARY + "' " + command.substr(program.size()) +
                                    " --quiet 2>'" + form.request.output.string() + ".log'")
                                       .c_str());
    std::ifstream log(form.request.output.string() + ".log");
    INFO(command);
    INFO(std::string(std::istreambuf_iterator<char>(log), {}));
    REQUIRE(WEXITSTATUS(status) <= 1);
    REQUIRE(fs::exists(form.request.output));
    return WEXITSTATUS(status);
}

/// Number in the phase "prompt 3/12: prefill"; 0 in other phases.
int prompt_in_progress(const EngineStatus& status) {
    const std::string part = "prompt ";
    return status.phase.starts_with(part) ? std::stoi(status.phase.substr(part.size())) : 0;
}

/// Recipe of the trace written by the copied command in a shell.
nlohmann::json recipe_of_command(const RunForm& form) {
    REQUIRE(run_command(form) == 0);
    return nlohmann::json::parse(trace::Reader(form.request.output).recipe_json());
}

/// Rows of /results/prompts without times, as text, because unknown numbers are unequal to themselves.
std::vector<std::string> rows_of_prompts(const fs::path& trace) {
    std::vector<std::string> rows;
    for (const auto& row : trace::Reader(trace).results(trace::schema::root::prompt_results))
        rows.push_back(fmt::format("{} {} {} {} {} {} {} {} {}", row.sample_id, row.sample_hash, row.policy, row.budget,
                                   row.prediction, row.answers_json, row.score, row.kl, row.output_error));
    return rows;
}

}  // namespace

TEST_CASE("the copied command makes the same trace as Run") {
    const trace::sample::TemporaryFolder folder;
    RunForm form;
    for (PolicyRow& row : form.rows) row.ticked = row.spec.definition->name == "snapkv";
    form.duplicate(static_cast<size_t>(
        std::find_if(form.rows.begin(), form.rows.end(), [](const PolicyRow& row) { return row.ticked; }) -
        form.rows.begin()));
    std::find_if(form.rows.begin(), form.rows.end(), [](const PolicyRow& row) {
        return row.ticked;
    })->spec.values.set("window", "8");
    form.request.budgets = "40, 0.9";
    form.request.options.n_new = 2;
    form.request.spectra = true;
    form.request.context =
        "-o it's \"quoted\" and `run` $HOME \\ back\nA second line; with {braces}, [brackets] * and ? | & < > # ! ~ "
        "as shells have them, and Señor 日本 too, all of which a prompt may hold without being harmed by them.";
    SECTION("with the defaults") {}
    SECTION("with all other settings") {
        form.request.name = "my notes";
        form.request.questions = {"-f who, and 'when'?", "[a, b]", "--query_aware=on"};
        form.request.options = {0.5, 0.75, 7, 9, "f32", "auto", true, true, 12, true};
        form.request.options.n_new = 2;
        form.request.options.query_aware = false;
        form.request.options.use_template = false;
        form.request.options.parse_special = false;
        form.request.spectra = false;
    }
    SECTION("from a file, with one seed for all random draws") {
        std::ofstream(folder / "it's one.txt") << form.request.context << "\n";
        form.read_prompt(folder / "it's one.txt");
        form.request.options.seed = form.request.options.sampling_seed = 3;
    }
    SECTION("from a list of files with questions") {
        std::ofstream(folder / "it's a.txt") << form.request.context;
        std::ofstream(folder / "b.jsonl") << nlohmann::json{{"context", form.request.context}, {"question", "Which?"}};
        form.add_sources({folder / "it's a.txt", folder / "b.jsonl"});
        form.request.questions = {"Who?", "When?"};
        form.request.options.stored = GENERATE("full", "rows");
    }
    form.request.output = folder / "the window's.h5";
    const auto expected = recipe_of_window(form);
    form.request.output = folder / "command.h5";
    CHECK(recipe_of_command(form) == expected);
}

TEST_CASE("a list of sources gives the same rows as kvscope run, and shows progress and left-out prompts") {
    const trace::sample::TemporaryFolder folder;
    fs::create_directory(folder / "texts");
    for (size_t i = 0; i < 12; ++i)
        std::ofstream(folder / fmt::format("texts/{:02}.txt", i)) << testing::text.substr(i);
    std::ofstream(folder / "texts/long.txt") << std::string(200'000, '1');
    std::ofstream(folder / "own.jsonl") << nlohmann::json{{"context", testing::text},
                                                          {"answers", nlohmann::json::array({"e"})}}
                                        << "\n{}\n";
    RunForm form = testing::small_form(folder / "app.h5");
    form.add_sources({folder / "texts", folder / "own.jsonl"});
    form.request.model = small_model;
    form.request.options.stored = GENERATE("full", "measures", "rows");
    CAPTURE(form.request.options.stored);
    testing::SessionWithEngine gui("run-sources");
    CHECK(gui.engine->run(form.filled_in()) != 0);
    bool saw_part = false, saw_seconds = false;
    while (gui.engine->status().busy()) {
        gui.frame();
        const EngineStatus status = gui.engine->status();
        const bool is_later = prompt_in_progress(status) > 1;
        saw_part = saw_part || (is_later && status.phase.find("/13: ") != std::string::npos);
        saw_seconds = saw_seconds || (is_later && status.seconds_left > 0);
        if (is_later) CHECK(status.what == "app.h5: 2 runs per prompt");
    }
    gui.until_idle();
    for (const auto& error : gui.errors) UNSCOPED_INFO(error);
    REQUIRE(gui.errors.empty());
    CHECK(saw_part);
    CHECK(saw_seconds);
    const auto was_told = [&](const std::string& place) {
        return std::ranges::any_of(gui.notices, [&](const std::string& notice) {
            return notice.find(place) != std::string::npos && notice.find("left out") != std::string::npos;
        });
    };
    CHECK(was_told("own.jsonl:2: expected the field"));
    CHECK(was_told("long.txt"));
    REQUIRE(gui.session.documents().size() == 1);
    CHECK(gui.session.documents()[0]->reader()->complete());
    CHECK(gui.session.documents()[0]->reader()->n_prompts() == (form.request.options.stores_only_rows() ? 0 : 13));

    const auto rows = rows_of_prompts(form.request.output);
    CHECK(rows.size() == 13 * 2);
    form.request.output = folder / "command.h5";
    CHECK(run_command(form) == 1);  // prompts are left out
    CHECK(rows_of_prompts(form.request.output) == rows);
}

TEST_CASE("a cancelled list of sources continues where it stopped") {
    const trace::sample::TemporaryFolder folder;
    for (size_t i = 0; i < 40; ++i) std::ofstream(folder / fmt::format("{:02}.txt", i)) << testing::text.substr(i);
    RunForm form = testing::small_form({});
    form.add_sources({folder.path()});
    testing::SessionWithEngine gui("run-sources-cancel");
    form.request.output = gui.folder / "t.h5";
    form.request.model = small_model;
    form.request.options.stored = GENERATE("full", "rows");
    CHECK(gui.engine->run(form.filled_in()) != 0);
    while (gui.engine->status().busy() && prompt_in_progress(gui.engine->status()) < 4) gui.frame();
    gui.engine->cancel();
    gui.until_idle();
    REQUIRE(gui.engine->stopped_run());
    CHECK_THAT(gui.engine->stopped_run()->rest, Catch::Contains("continues where it stopped (prompt "));
    CHECK(gui.engine->continue_stopped_run() != 0);
    gui.until_idle();
    for (const auto& error : gui.errors) UNSCOPED_INFO(error);
    REQUIRE(gui.errors.empty());
    CHECK(rows_of_prompts(form.request.output).size() == 40 * 2);
}

}  // namespace kvscope::gui

#endif
