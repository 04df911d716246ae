#include <catch2/catch.hpp>
#include <string>

#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

/// The full cache's answer and one of SnapKV's, of these tokens.
std::filesystem::path write_answers(const std::filesystem::path& path, const std::vector<int32_t>& full,
                                    const std::vector<int32_t>& other) {
    namespace sample = trace::sample;
    const sample::Options options;
    const trace::PromptRecord prompt = sample::prompt(options);
    trace::Writer writer(path, sample::recipe, {.force = true, .generator = "answers_view_test"});
    writer.write_model(sample::model(options));
    writer.write_prompt(0, prompt);
    const auto write = [&](int run, trace::RunRecord record, const std::vector<int32_t>& ids) {
        record.output_text = " answer";
        record.output_ids = ids;
        writer.write_run(0, run, record);
    };
    write(0, sample::full_run(options, prompt), full);
    write(1, sample::selecting_run(options, prompt, "snapkv", 16), other);
    writer.finish();
    return path;
}

std::string shown_answers(const std::vector<int32_t>& full, const std::vector<int32_t>& other) {
    const trace::sample::TemporaryFolder folder;
    AppOptions options = explore(write_answers(folder / "t.h5", full, other));
    options.view = "answers";
    DrivenApp driven(options);
    driven.settle();
    return driven.shown_text();
}

}  // namespace

TEST_CASE("an answer that breaks off is told from the same one: what is missing is counted as what is extra is") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    using Catch::Matchers::Contains;
    CHECK_THAT(shown_answers({1, 2, 3, 4, 5, 6}, {1, 2, 3}), Contains("0 extra, 3 missing of 6 tokens"));
    CHECK_THAT(shown_answers({1, 2, 3}, {1, 2, 3, 4, 5, 6}), Contains("3 extra, 0 missing of 3 tokens"));
    CHECK_THAT(shown_answers({1, 2, 3, 4, 5, 6}, {1, 9, 3}), Contains("1 extra, 4 missing of 6 tokens"));
    CHECK_THAT(shown_answers({1, 2, 3}, {1, 2, 3}), Contains("as full"));
}

}  // namespace kvscope::gui::testing
