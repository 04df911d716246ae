#ifdef KVSCOPE_WITH_ENGINE

#include <catch2/catch.hpp>

#include "app/gui/session/engine_session.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/gui/small_model.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {

using Catch::Matchers::Contains;

TEST_CASE("the status bar distinguishes the loaded model from the trace's model") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    const std::string of_trace = "sample.h5: " + driven.session().focus()->reader()->model().name;
    CHECK_THAT(driven.shown_text(), Contains("no model loaded") && Contains(of_trace));
    EngineSession& engine = *driven.app().engine();
    engine.load_model(small_model);
    REQUIRE(driven.draw_until([&] { return !engine.status().busy(); }, patience));
    REQUIRE(engine.status().model != driven.session().focus()->reader()->model().name);
    CHECK_THAT(driven.shown_text(), Contains("model loaded: " + engine.status().model) && Contains(of_trace));
}

}  // namespace kvscope::gui::testing

#endif
