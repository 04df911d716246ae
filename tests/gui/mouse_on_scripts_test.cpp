// Tests of the token under the mouse where letters join across tokens or run from right to left.
#include <imgui_internal.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/gui/driven_window.h"
#include "tests/skip.h"
#include "tests/trace/sample_trace.h"
#include "trace/writer.h"

namespace kvscope::gui::testing {
namespace {

/// Tokens under the mouse along a line, starting at its left or right end, each once.
std::vector<int64_t> along_line(DrivenApp& driven, size_t line, bool from_right) {
    std::vector<int64_t> tokens;
    driven.drive([&](ImGuiTestContext& c) {
        const ImRect text = c.WindowInfo("//prompt-1/text").Window->InnerRect;
        const float em = ImGui::GetFontSize();
        const float y = text.Min.y + 1.6f * em + (static_cast<float>(line) + 0.5f) * 1.4f * em;
        int n_empty = 0;
        for (float x = 1; x < text.GetWidth() && (tokens.empty() || n_empty < 5); x += 4) {
            c.MouseTeleportToPos({from_right ? text.Max.x - x : text.Min.x + x, y});
            c.Yield();
            const int64_t token = driven.session().hover().first_token;
            n_empty = token < 0 ? n_empty + 1 : 0;
            if (token >= 0 && (tokens.empty() || tokens.back() != token)) tokens.push_back(token);
        }
    });
    return tokens;
}

}  // namespace

TEST_CASE("tokens of one word in Arabic lie from right to left, bytes of one character from left to right") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    const trace::sample::Options sizes;
    trace::PromptRecord prompt = trace::sample::prompt(sizes);
    std::fill(prompt.token_text.begin(), prompt.token_text.end(), "\n");
    const std::vector<std::string> texts = {"\u0645\u0631",
                                            "\u062d",
                                            "\u0628\u0627",
                                            "\n",
                                            "a",
                                            "\u27e8E6\u27e9",
                                            "\u27e8B5\u27e9\u27e88B\u27e9",
                                            "b",
                                            "\n"};
    std::copy(texts.begin(), texts.end(), prompt.token_text.begin());
    {
        trace::Writer writer(folder / "t.h5", trace::sample::recipe, {});
        writer.write_model(trace::sample::model(sizes));
        writer.write_prompt(0, prompt);
        const auto runs = trace::sample::runs(sizes, prompt);
        for (int run = 0; run < 2; ++run) writer.write_run(0, run, runs[static_cast<size_t>(run)]);
        writer.finish();
    }
    AppOptions options;
    options.traces = {folder / "t.h5"};
    options.view = "prompt";
    DrivenApp driven(options);
    driven.settle();
    CHECK(along_line(driven, 0, true) == std::vector<int64_t>{0, 1, 2, 3});
    CHECK(along_line(driven, 1, false) == std::vector<int64_t>{4, 5, 6, 7, 8});
}

}  // namespace kvscope::gui::testing
