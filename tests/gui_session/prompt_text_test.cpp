#include "app/gui/view_data/prompt_text.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "app/gui/session/session.h"
#include "tests/trace/sample_trace.h"

using namespace kvscope;
using namespace kvscope::gui;

namespace {

/// Makes a trace with two prompts of 48 and 60 tokens.
void write_two_prompts(const std::filesystem::path& path) {
    trace::sample::Options options;
    trace::Writer writer(path, trace::sample::recipe, {.force = true, .generator = "sample"});
    writer.write_model(trace::sample::model(options));
    for (int i = 0; i < 2; ++i) {
        options.n_tokens = i == 0 ? 48 : 60;
        auto prompt = trace::sample::prompt(options, 0);
        prompt.name = "prompt " + std::to_string(i);
        writer.write_prompt(i, prompt);
        writer.write_run(i, 0, trace::sample::full_run(options, prompt));
    }
    writer.finish();
}

}  // namespace

TEST_CASE("marks and found texts belong to the shown prompt") {
    const trace::sample::TemporaryFolder folder;
    write_two_prompts(folder / "two.h5");
    Tasks tasks([] {});
    Session session(tasks);
    Document& document = session.open(folder / "two.h5");
    const auto marks = [&] {
        for (int i = 0; i < 6; ++i) {
            marked_spans(session, document);
            tasks.wait();
            session.end_frame();
        }
        return marked_spans(session, document);
    };
    session.mark = "w51";
    CHECK(marks().empty());
    REQUIRE(prompt_text(session, document));
    CHECK(prompt_text(session, document)->tokens.size() == 48);

    session.show_prompt(document, 1);
    CHECK_FALSE(prompt_text(session, document));
    CHECK(marks().size() == 1);
    CHECK(prompt_text(session, document)->tokens.size() == 60);

    session.mark = "w47";
    session.show_prompt(document, 0);
    CHECK(marks().size() == 1);
}
