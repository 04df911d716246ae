#include <catch2/catch.hpp>
#include <string>

#include "common/json.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"
#include "trace/hdf5/hdf5.h"

namespace kvscope::gui::testing {
namespace {

AppOptions trace_view_alone(const SampleTrace& sample) {
    AppOptions options;
    options.traces = {sample.path};
    options.view = "trace";
    return options;
}

void look_at(DrivenApp& driven, const char* path) {
    driven.app().views().at(0)->view->load({{"path", path}});
    driven.settle();
}

bool is_shown(DrivenApp& driven, const std::string& text) {
    return driven.shown_text().find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("a trace of rows alone says where its numbers are") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    {
        trace::Writer writer(folder / "rows.h5", trace::sample::recipe);
        trace::ModelRecord model = trace::sample::model({});
        model.spectrum_q = model.spectrum_k = model.spectrum_v = {};
        writer.write_model(model);
        writer.write_results("prompts", 0, std::vector<trace::ResultRow>(1));
        writer.finish();
    }
    AppOptions options;
    options.traces = {folder / "rows.h5"};
    options.view = "prompt";
    DrivenApp driven(options);
    driven.settle();
    CHECK(is_shown(driven, "rows of results but no prompt"));
    CHECK_FALSE(is_shown(driven, "Spectrum"));
}

TEST_CASE("the view Trace lists what a job has written so far, not the trace that it will replace") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(trace_view_alone(sample));
    look_at(driven, "/prompts/0/token_ids");
    CHECK(is_shown(driven, "48 · i32"));
    trace::sample::Options longer;
    longer.n_tokens = 90;
    trace::Writer writer(sample.path, R"({"another": "recipe"})", {.force = true, .generator = "sample"});
    writer.write_model(trace::sample::model(longer));
    writer.write_prompt(0, trace::sample::prompt(longer, 0));
    driven.session().open(sample.path, true);
    driven.settle();
    CHECK(is_shown(driven, "90 · i32"));
    CHECK_FALSE(is_shown(driven, "48 · i32"));
}

TEST_CASE("the view Trace shows each layer's values under its own number") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(trace_view_alone(sample));
    look_at(driven, "/prompts/0/full/window_attention");
    REQUIRE(is_shown(driven, "values read"));
    {
        const trace::h5::Guard disk_is_busy;
        driven.drive([](ImGuiTestContext& c) {
            c.SetRef("//trace-1");
            c.ItemInputValue("**/of 3##trace index 0", 1);
            c.Yield(2);
        });
        CHECK(is_shown(driven, "reading …"));
        CHECK_FALSE(is_shown(driven, "values read"));
    }
    driven.settle();
    CHECK(is_shown(driven, "values read"));
}

}  // namespace kvscope::gui::testing
