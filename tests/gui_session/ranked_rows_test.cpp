#include "app/gui/view_data/ranked_rows.h"

#include <catch2/catch.hpp>
#include <cmath>

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

TEST_CASE("rows are filtered and sorted, and rows with equal or unknown cells keep their order") {
    auto rows = std::make_shared<RankedRows>();
    rows->made.table = {"t", "T", {{"name", "", ""}, {"number", "", "", analysis::ColumnType::real}}, {}};
    const auto add = [&](const std::string& name, analysis::Cell number) {
        rows->made.table.rows.push_back({{name, std::move(number)}});
    };
    add("b", 2.0);
    add("", {});
    add("a", 1.0);
    add("B", std::nan(""));
    add("c", 2.0);
    add("a", int64_t{-3});
    using Rows = std::vector<size_t>;
    const auto sorted = [&](std::optional<size_t> column, bool descending, const std::string& filter = "") {
        return filter_and_sort_rows(rows, {column, descending, filter}).rows;
    };
    CHECK(sorted({}, false) == Rows{0, 1, 2, 3, 4, 5});
    CHECK(sorted(1, false) == Rows{5, 2, 0, 4, 1, 3});
    CHECK(sorted(1, true) == Rows{0, 4, 2, 5, 1, 3});
    CHECK(sorted(0, false) == Rows{3, 2, 5, 0, 4, 1});
    CHECK(sorted(0, true) == Rows{4, 0, 2, 5, 3, 1});
    CHECK(sorted(1, false, "b") == Rows{0, 3});
    CHECK(sorted(7, false) == Rows{0, 1, 2, 3, 4, 5});
    const analysis::Table table = filter_and_sort_rows(rows, {1, true, "A"}).table();
    REQUIRE(table.rows.size() == 3);  // "NaN" contains the letter, too
    CHECK(std::get<kvscope::SharedText>(table.rows[0].cells[0]).string() == "a");
    CHECK(table.columns.size() == 2);
}

}  // namespace kvscope::gui
