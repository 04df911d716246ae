#include "app/gui/view_data/ranked_rows.h"

#include <catch2/catch.hpp>

#include "analysis/ranking.h"
#include "app/gui/session/session.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui {

TEST_CASE("every prompt of a trace without runs can be ranked") {
    const trace::sample::TemporaryFolder folder;
    const auto path = folder / "u.h5";
    const trace::sample::Options options;
    trace::Writer writer(path, trace::sample::recipe, {.force = true, .generator = "ranked_rows_test"});
    writer.write_model(trace::sample::model(options));
    for (int prompt = 0; prompt < 2; ++prompt) {
        auto record = trace::sample::prompt(options, 0);
        record.name = prompt == 0 ? "first" : "second";
        writer.write_prompt(prompt, record);
    }
    Tasks tasks{[] {}};
    Session session{tasks};
    Document& document = session.open(path.string() + ".part");
    REQUIRE(document.reader()->n_prompts() == 2);
    const TaskSlot<RankedRows> ranked;
    const TaskSlot<OrderedRows> ordered;
    const auto rows_now = [&] {
        TaskResult<OrderedRows> answer;
        for (int frame = 0; frame < 6; ++frame) {
            const auto request = ranking_request(session, analysis::ranking_definition("heads"), {});
            REQUIRE(request.document);
            answer = ask_ranked_rows(session, ranked, ordered, request, {});
            tasks.wait();
            session.end_frame();
        }
        return answer;
    };
    const auto first = rows_now();
    REQUIRE(first.value);
    CHECK(first.value->of->prompt == 0);
    session.show_prompt(document, 1);
    const auto second = rows_now();
    CHECK(second.current);
    REQUIRE(second.value);
    CHECK(second.value->of->prompt == 1);
}

}  // namespace kvscope::gui
