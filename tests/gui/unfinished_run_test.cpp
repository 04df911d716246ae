#include <atomic>
#include <catch2/catch.hpp>

#include "app/gui/shell/app.h"
#include "tests/gui/session_with_engine.h"
#include "trace/reader.h"

namespace kvscope::gui::testing {

TEST_CASE("a run that was interrupted goes on from its trace alone, to the trace that it was to make") {
    SessionWithEngine gui("unfinished");
    auto request = gui.request({"snapkv:window=4", "streamingllm"}, "16,25%");
    request.options.temperature = 0.5;
    request.options.use_template = false;
    std::atomic<bool> is_reached = false, may_go_on = false;
    gui.engine = make_engine_session(
        gui.session, [](const std::string&, bool) {}, [] {}, [] { return std::vector<fs::path>(); }, 0, [&] {
            is_reached = true;
            while (!may_go_on) std::this_thread::yield();
        });
    gui.engine->run(request);
    while (!is_reached) std::this_thread::yield();
    gui.engine->cancel();
    may_go_on = true;
    gui.until_idle();
    const fs::path part = request.output.string() + ".part";
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
