#include <catch2/catch.hpp>

#include "app/gui/shell/app.h"
#include "tests/gui/session_with_engine.h"
#include "trace/part_folder.h"
#include "trace/reader.h"

namespace kvscope::gui::testing {

TEST_CASE("a run that was interrupted goes on from its trace alone, to the trace that it was to make") {
    SessionWithEngine gui("unfinished");
    auto request = gui.request({"snapkv:window=4", "h2o"}, "16,25%");
    request.options.temperature = 0.5;
    request.options.use_template = false;
    request.options.n_new = 128;
    request.options.ignore_eos = true;
    request.options.isolated = true;  // one run after the other: some are left to do when the first is done
    const fs::path part = request.output.string() + ".part";
    const auto has_run = [&] {
        try {
            return !trace::list_parts(part).runs.empty();
        } catch (const std::exception&) {
            return false;  // not begun yet
        }
    };
    gui.engine->run(request);
    while (gui.engine->status().busy() && !has_run()) gui.frame();
    gui.engine->cancel();
    gui.until_idle();
    REQUIRE(gui.errors.empty());
    REQUIRE(fs::exists(part));
    REQUIRE_FALSE(fs::exists(request.output));
    const std::string recipe = trace::Reader(part).recipe_json();

    SessionWithEngine later("later");
    later.known_models = {request.model};
    CHECK(later.engine->go_on(request.output) != 0);
    later.until_idle();
    CHECK(later.errors.empty());
    REQUIRE(fs::exists(request.output));
    const trace::Reader reader(request.output);
    CHECK(reader.complete());
    CHECK(reader.recipe_json() == recipe);
    CHECK(reader.n_runs(0) == 5);
    CHECK(later.session.documents().size() == 1);

    CHECK(later.engine->go_on(later.folder / "nothing.h5") == 0);
    CHECK(later.errors.size() == 1);
}

}  // namespace kvscope::gui::testing
