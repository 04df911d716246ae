#ifdef KVSCOPE_WITH_ENGINE

#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "app/gui/view_data/run_form.h"
#include "common/json.h"
#include "tests/gui/session_with_engine.h"
#include "tests/gui/small_model.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui {
namespace {

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

/// Recipe of the trace written by the copied command in a shell.
nlohmann::json recipe_of_command(const RunForm& form) {
    const std::string command = form.command(small_model);
    const std::string program = "kvscope ";
    REQUIRE(command.starts_with(program));
    const int status = std::system((std::string("'") + KVSCOPE_BINARY + "' " + command.substr(program.size()) +
                                    " --quiet 2>'" + form.request.output.string() + ".log'")
                                       .c_str());
    std::ifstream log(form.request.output.string() + ".log");
    INFO(command);
    INFO(std::string(std::istreambuf_iterator<char>(log), {}));
    REQUIRE(WEXITSTATUS(status) == 0);
    return nlohmann::json::parse(trace::Reader(form.request.output).recipe_json());
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
    form.request.output = folder / "the window's.h5";
    const auto expected = recipe_of_window(form);
    form.request.output = folder / "command.h5";
    CHECK(recipe_of_command(form) == expected);
}

}  // namespace kvscope::gui

#endif
