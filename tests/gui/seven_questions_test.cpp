// Tests of how many steps each of seven questions about compressed runs takes. A click, a command of the palette, a key
// or a typed name is one step.
#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "analysis/what_if/kept_summary.h"
#include "analysis/what_if/what_if.h"
#include "app/gui/view_data/runs_alone.h"
#include "common/json.h"
#include "tests/analysis/policy_trace.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/policy_runs.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

/// A user whose steps are counted.
class Person {
 public:
    explicit Person(const AppOptions& options) : driven_(options) { driven_.settle(); }

    void types_into_palette(const std::string& text) {
        driven_.start_by_palette(text);
        ++n_steps_;
    }
    void clicks(const std::string& label) {
        drive([&](ImGuiTestContext& c) { c.ItemClick(label.c_str()); });
    }
    void clicks_letter(const RunKey& run, const char* letter) { clicks("//runs-1/**/" + run.text() + "/" + letter); }
    void clicks_run(const RunKey& run) { clicks("//runs-1/**/" + run.text() + "/" + session().attributes(run).label); }
    void presses(ImGuiKeyChord key) {
        drive([&](ImGuiTestContext& c) { c.KeyPress(key); });
    }
    /// Presses a key and confirms with Enter: two steps.
    void presses_and_confirms(ImGuiKeyChord key, const std::string& name) {
        drive([&](ImGuiTestContext& c) {
            c.KeyPress(key);
            c.Yield(3);
            c.ItemInputValue("//$FOCUSED/##path", name.c_str());
            c.Yield(3);
        });
        ++n_steps_;
    }

    std::string reads() { return driven_.shown_text(); }
    int n_steps() const { return n_steps_; }
    Session& session() { return driven_.session(); }
    App& app() { return driven_.app(); }
    void settles() { driven_.settle(); }

    const View& view(const std::string& kind) {
        for (const auto& open : driven_.app().views())
            if (open->kind->name == kind) return *open->view;
        throw std::runtime_error(kind + " is not open");
    }
    analysis::Table table(const std::string& kind) {
        const auto table = view(kind).table();
        REQUIRE(table);
        return *table;
    }

 private:
    void drive(const std::function<void(ImGuiTestContext&)>& does) {
        driven_.drive([&](ImGuiTestContext& c) {
            does(c);
            c.Yield(3);
        });
        driven_.settle();
        ++n_steps_;
    }

    DrivenApp driven_;
    int n_steps_ = 0;
};

}  // namespace

TEST_CASE("A, B and a palette entry show the sentences that one run lost and another kept", "[questions]") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    Person person(explore(sample));
    const auto runs = person.session().all_runs();
    person.clicks_letter(runs.at(1), "A");
    person.clicks_letter(runs.at(2), "B");
    person.types_into_palette("sentences that a lost");
    CHECK(person.n_steps() <= 3);
    CHECK_THAT(person.table("rankings").title, Contains(person.session().attributes(runs[1]).label) &&
                                                   Contains(person.session().attributes(runs[2]).label));
}

TEST_CASE("one palette entry shows the layer in which heads differ most", "[questions]") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    Person person(explore(sample));
    person.types_into_palette("heads that differ most");
    CHECK(person.n_steps() == 1);
    const analysis::Table table = person.table("rankings");
    const trace::Reader reader(sample.path);
    REQUIRE(table.rows.size() > 1);
    CHECK_THAT(table.title, Contains("heads") && Contains("divergence"));
}

TEST_CASE("one click on a run shows the budget at which its coverage reaches 90 %", "[questions]") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const auto stored = h2o_and_snapkv();
    Person person(explore(stored.path()));
    const RunKey snapkv = person.session().all_runs().at(2);
    const auto reader = stored.reader();
    const analysis::WhatIf what_if(reader, 0, 2);
    int64_t first = 9;
    while (analysis::summarize_kept_entries(reader, 0, what_if(what_if.recorded(), first)).coverage < 0.9) ++first;
    person.clicks_run(snapkv);
    CHECK(person.n_steps() == 1);
    CHECK_THAT(person.reads(), Contains("snapkv:window=8") && Contains(std::to_string(first) + " ("));
}

TEST_CASE("a run and a token's number show why the token was dropped", "[questions]") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const auto stored = h2o_and_snapkv();
    Person person(explore(stored.path()));
    person.clicks_run(person.session().all_runs().at(2));
    person.types_into_palette("t17");
    CHECK(person.n_steps() == 2);
    const Cursor cursor = person.session().cursor();
    CHECK(cursor.first_token == 17);
    CHECK(cursor.run == person.session().all_runs().at(2));
    const std::string said = person.reads();
    const auto kept = stored.reader().kept(0, 2);
    size_t n_keeping = 0;
    for (size_t layer = 0; layer < kept->n_layers; ++layer)
        for (size_t row = 0; row < kept->n_rows; ++row) {
            const auto& entries = kept->row(layer, row);
            n_keeping += std::find(entries.begin(), entries.end(), 17u) != entries.end();
        }
    REQUIRE(n_keeping < kept->n_layers * kept->n_rows);
    CHECK_THAT(said, Contains("token 17"));
    CHECK_THAT(said, Contains("cut-off"));  // score that it would have needed
}

TEST_CASE("two steps show the memory that each run saves for this text and another one", "[questions]") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    Person person(explore(sample));
    person.types_into_palette("show cost");
    CHECK(person.n_steps() == 1);
    const auto names = [&] {
        std::vector<std::string> all;
        for (const auto& column : person.table("cost").columns) all.push_back(column.name);
        return all;
    };
    const auto has = [&](const char* name) {
        const auto all = names();
        return std::find(all.begin(), all.end(), name) != all.end();
    };
    CHECK(has("cache_bytes"));
    CHECK(has("compression"));
    person.clicks(DrivenApp::window_of("Cost###cost") + "/memory at");
    CHECK(person.n_steps() == 2);
    CHECK(has("bytes_at"));
    CHECK(has("compression_at"));
}

TEST_CASE("one palette entry shows which answer differs first from the full cache's, and at which token",
          "[questions]") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    Person person(explore(sample));
    person.types_into_palette("rank answers");
    CHECK(person.n_steps() == 1);
    CHECK(person.table("rankings").name == "answers");
    CHECK(person.table("rankings").rows.size() > 1);
}

TEST_CASE("three steps make a figure of three runs", "[questions]") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const analysis::test::PolicyTrace stored({{"full", analysis::test::PolicyTrace::n_tokens},
                                              {"h2o", 12},
                                              {"h2o", 20},
                                              {"snapkv:window=8", 12},
                                              {"snapkv:window=8", 20},
                                              {"pyramidkv:window=8", 12},
                                              {"streaming-llm", 12}});
    Person person(explore(stored.path()));
    const trace::sample::TemporaryFolder folder;
    const fs::path file = folder / "three.csv";
    person.types_into_palette("only h2o, snapkv, streaming-llm 12");
    for (const RunKey& key : person.session().all_runs()) {
        const auto& run = person.session().attributes(key);
        CAPTURE(run.label);
        CHECK(person.session().is_visible(key) ==
              (run.policy == "full" || (run.budget == 12 && run.policy != "pyramidkv")));
    }
    person.presses_and_confirms(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_E, file.string());
    CHECK(person.n_steps() <= 3);
    person.app().tasks().wait();
    person.settles();
    CHECK(fs::exists(file));
}

TEST_CASE("typed text finds the matching runs") {
    const analysis::test::PolicyTrace stored({{"full", analysis::test::PolicyTrace::n_tokens},
                                              {"snapkv:window=8", 12},
                                              {"snapkv:window=8", 20},
                                              {"ada-snapkv:window=8", 12},
                                              {"h2o", 12},
                                              {"h2o", 20}});
    Tasks tasks([] {});
    Session session(tasks);
    session.open(stored.path());
    const auto labels = [&](const std::string& typed) {
        std::vector<std::string> all;
        for (const RunKey& key : parse_typed_runs(session, typed)) {
            const auto& run = session.attributes(key);
            all.push_back(fmt::format("{} {}", run.policy, run.budget));
        }
        return all;
    };
    using Labels = std::vector<std::string>;
    CHECK(labels("only snapkv") == Labels{"snapkv 12", "snapkv 20"});
    CHECK(labels("Only SnapKV @ 12") == Labels{"snapkv 12"});
    CHECK(labels("only snapkv, h2o 20") == Labels{"snapkv 20", "h2o 20"});
    CHECK(labels("only h2o 12, snapkv 20") == Labels{"h2o 12", "snapkv 20"});
    CHECK(labels("only ada") == Labels{"ada-snapkv 12"});
    CHECK(labels("only 20") == Labels{"snapkv 20", "h2o 20"});
    CHECK(labels("only h2o, h2o") == Labels{"h2o 12", "h2o 20"});
    CHECK(labels("only full, snapkv 12") ==
          Labels{fmt::format("full {}", analysis::test::PolicyTrace::n_tokens), "snapkv 12"});
    CHECK(labels("only snapkv@12,h2o@20") == Labels{"snapkv 12", "h2o 20"});
    for (const char* nothing : {"only h2o 2", "only snapkv 1", "", "only", "only ", "only ,", "only h2o,",
                                "only nothing", "only h2o 13", "snapkv 12"})
        CHECK(labels(nothing).empty());
}

}  // namespace kvscope::gui::testing
