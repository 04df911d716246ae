#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <string>

#include "tests/gui/drawn_text.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

/// Writes a trace with these tokens as answers of the full cache and of the policies.
std::filesystem::path write_answers(const std::filesystem::path& path, const std::vector<int32_t>& full,
                                    const std::vector<int32_t>& other, const std::string& text = " answer",
                                    const std::string& question = "",
                                    const std::vector<std::string>& policies = {"snapkv"}) {
    namespace sample = trace::sample;
    const sample::Options options;
    trace::PromptRecord prompt = sample::prompt(options);
    if (!question.empty()) prompt.question = question;
    trace::Writer writer(path, sample::recipe, {.force = true, .generator = "answers_view_test"});
    writer.write_model(sample::model(options));
    writer.write_prompt(0, prompt);
    const auto write = [&](int run, trace::RunRecord record, const std::vector<int32_t>& ids) {
        record.output_text = text;
        record.output_ids = ids;
        writer.write_run(0, run, record);
    };
    write(0, sample::full_run(options, prompt), full);
    for (size_t i = 0; i < policies.size(); ++i)
        write(static_cast<int>(i) + 1, sample::selecting_run(options, prompt, policies[i], 16), other);
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

TEST_CASE("extra and missing tokens of an answer are counted") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    using Catch::Matchers::Contains;
    CHECK_THAT(shown_answers({1, 2, 3, 4, 5, 6}, {1, 2, 3}), Contains("0 extra, 3 missing of 6 tokens"));
    CHECK_THAT(shown_answers({1, 2, 3}, {1, 2, 3, 4, 5, 6}), Contains("3 extra, 0 missing of 3 tokens"));
    CHECK_THAT(shown_answers({1, 2, 3, 4, 5, 6}, {1, 9, 3}), Contains("1 extra, 4 missing of 6 tokens"));
    CHECK_THAT(shown_answers({1, 2, 3}, {1, 2, 3}), Contains("as full"));
}

TEST_CASE("the differences of all answers have the same form") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    std::vector<std::string> policies(6, "h2o");  // short labels leave room for words, long ones do not
    policies.insert(policies.end(), 6, "ada-pyramidkv");
    AppOptions options = explore(write_answers(folder / "t.h5", {1, 2, 3}, {1, 2}, " answer", "", policies));
    options.view = "answers";
    DrivenApp driven(options);
    driven.settle();
    const std::string shown = driven.shown_text();
    CAPTURE(shown);
    CHECK(shown.find("+0 −1") != std::string::npos);
    CHECK(shown.find("extra") == std::string::npos);
}

TEST_CASE("an answer to a question other than the one at the top is below its own question") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    for (const char* name : {"one", "two"})
        write_answers(folder / (std::string(name) + ".h5"), {1, 2, 3}, {1, 2, 4}, " answer",
                      "Who is " + std::string(name) + "?");
    AppOptions options = explore(folder / "one.h5");
    options.traces.push_back(folder / "two.h5");
    options.view = "answers";
    DrivenApp driven(options);
    driven.settle();
    const std::string shown = driven.shown_text();
    const auto times = [&](const std::string& text) {
        size_t n = 0;
        for (size_t at = shown.find(text); at != std::string::npos; at = shown.find(text, at + 1)) ++n;
        return n;
    };
    CAPTURE(shown);
    // One question is above all answers. The other one is above both answers of its trace.
    CHECK(times("Who is one?") + times("Who is two?") == 3);
    CHECK(std::min(times("Who is one?"), times("Who is two?")) == 1);
}

TEST_CASE("answers without spaces wrap within their cells") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const auto repeated = [](const std::string& part, int n) {
        std::string all;
        for (int i = 0; i < n; ++i) all += part;
        return all;
    };
    const std::string answer = GENERATE_COPY(repeated("東京都千代田区の記録、", 40), repeated("x", 600),
                                             "https://" + repeated("example.org/path_", 40), repeated("กขค", 80));
    CAPTURE(answer.substr(0, 30));
    const trace::sample::TemporaryFolder folder;
    AppOptions options = explore(write_answers(folder / "t.h5", {1, 2, 3}, {1, 2, 9}, answer));
    options.view = "answers";
    DrivenApp driven(options);
    driven.settle();
    std::vector<ImRect> cells;
    driven.drive([&](ImGuiTestContext& c) { cells = items_of_view(c, "answers", "run"); });
    REQUIRE(cells.size() == 2);
    REQUIRE(cells[0].Min.x != cells[1].Min.x);  // side by side
    const auto windows = windows_of_view("answers");
    const auto outputs = std::find_if(windows.begin(), windows.end(), [](const ImGuiWindow* window) {
        return std::string(window->Name).find("/outputs_") != std::string::npos;
    });
    REQUIRE(outputs != windows.end());
    std::vector<DrawnGlyph> outside;
    std::set<float> lines;
    for (const DrawnGlyph& glyph : drawn_glyphs(**outputs)) {
        lines.insert(std::floor(glyph.whole.GetCenter().y / 8));
        const bool is_in_cell = std::any_of(cells.begin(), cells.end(), [&](const ImRect& cell) {
            return glyph.whole.Min.x >= cell.Min.x - 2 && glyph.whole.Max.x <= cell.Max.x + 2;
        });
        if (!is_in_cell) outside.push_back(glyph);
    }
    CHECK(lines.size() > 2);
    CHECK(outside.empty());
}

}  // namespace kvscope::gui::testing
