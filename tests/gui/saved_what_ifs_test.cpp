#ifdef KVSCOPE_WITH_ENGINE

#include "app/gui/session/saved_what_ifs.h"

#include <catch2/catch.hpp>

#include "app/gui/session/annotations.h"
#include "app/gui/session/session_state.h"
#include "common/json.h"
#include "tests/gui/session_with_engine.h"

namespace kvscope::gui {

TEST_CASE("a kept what-if returns when its trace is opened") {
    testing::SessionWithEngine gui;
    gui.engine->run(gui.request({"snapkv:window=8", "h2o"}, "16,24"));
    gui.until_idle();
    Document& document = *gui.session.documents().front();
    gui.session.selection.select_run(document.key_of(0, 1));
    LiveWhatIf what_if;
    gui.settle(what_if);
    what_if.budget() = 24;  // same as run 2
    gui.settle(what_if);
    document.annotations_changed = false;
    CHECK(document.kept_what_ifs().empty());
    what_if.keep(gui.session);
    CHECK(document.annotations_changed);
    // Needs the prefill in memory; the trace alone is not enough.
    what_if.values().set("window", "10");
    gui.settle(what_if);
    what_if.keep(gui.session);
    what_if.budget() = 30;
    gui.settle(what_if);
    CHECK(document.reader()->n_runs(0) == 8);
    REQUIRE(document.kept_what_ifs().size() == 2);
    save_annotations(document, nlohmann::json());

    Tasks tasks([] {});
    Session again(tasks);
    Document& reopened = again.open(document.path());
    load_annotations(reopened);
    CHECK(reopened.reader()->n_runs(0) == 5);
    std::vector<std::string> notices;
    for (int i = 0; i < 3; ++i) {
        restore_what_ifs(again, [&](const std::string& text) { notices.push_back(text); });
        tasks.wait();
    }
    REQUIRE(reopened.reader()->n_runs(0) == 6);
    CHECK(reopened.reader()->kept(0, 5)->indices == reopened.reader()->kept(0, 2)->indices);
    CHECK(again.look(reopened.key_of(0, 5)).label.find("what-if") != std::string::npos);
    CHECK(reopened.shown_order(0)[2] == reopened.id_of(0, 5));
    REQUIRE(notices.size() == 1);
    CHECK(notices[0].find("window changes the scores") != std::string::npos);
    CHECK(!reopened.annotations_changed);
    // What-ifs that could not be made are kept, and removed ones are not.
    CHECK(reopened.kept_what_ifs().size() == 2);
    reopened.remove_run(reopened.id_of(0, 5));
    CHECK(reopened.annotations_changed);
    CHECK(reopened.kept_what_ifs().size() == 1);
    const auto parameters = [](const Document& of, size_t i) {
        return nlohmann::json::parse(of.kept_what_ifs()[i].parameters_json);
    };
    CHECK(parameters(reopened, 0) == parameters(document, 1));
}

}  // namespace kvscope::gui

#endif
