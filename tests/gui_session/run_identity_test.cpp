#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "analysis/runs/run_choice.h"
#include "app/gui/session/annotations.h"
#include "app/gui/session/session.h"
#include "app/gui/view_data/live_what_if.h"
#include "common/json.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui {
namespace {

/// Returns the sample's first prompt with its first runs, complete.
void write_runs(const std::filesystem::path& path, size_t n_runs) {
    const trace::sample::Options options;
    trace::Writer writer(path, trace::sample::recipe, {.force = true, .generator = "sample"});
    writer.write_model(trace::sample::model(options));
    const auto prompt = trace::sample::prompt(options, 0);
    writer.write_prompt(0, prompt);
    const auto runs = trace::sample::runs(options, prompt);
    for (size_t i = 0; i < n_runs; ++i) writer.write_run(0, static_cast<int>(i), runs[i]);
    writer.finish();
}

std::vector<trace::RunRecord> sample_runs() {
    const trace::sample::Options options;
    return trace::sample::runs(options, trace::sample::prompt(options, 0));
}

trace::RunRecord what_if_of(size_t run) {
    auto record = sample_runs()[run];
    record.label = record.label + " what-if";
    return record;
}

/// A trace with four runs, to which the current job has added two.
struct GrowingTrace {
    trace::sample::TemporaryFolder folder;
    std::filesystem::path path = folder / "growing.h5";
    Tasks tasks{[] {}};
    Session session{tasks};
    Document* document = nullptr;

    GrowingTrace() {
        write_runs(path, 4);
        document = &session.open(path);
        auto runs = sample_runs();
        document->set_pending_runs(0, {{4, runs[4]}, {5, runs[5]}});
    }
    /// Writes the job's runs to the file.
    void grow() {
        write_runs(path, 6);
        document->reload();
    }
    /// Replaces the file by another trace with a different run 1.
    void sample_of_another_policy() {
        const trace::sample::Options options;
        {
            trace::Writer writer(path, trace::sample::recipe, {.force = true, .generator = "sample"});
            writer.write_model(trace::sample::model(options));
            const auto prompt = trace::sample::prompt(options, 0);
            writer.write_prompt(0, prompt);
            const auto runs = trace::sample::runs(options, prompt);
            writer.write_run(0, 0, runs[0]);
            writer.write_run(0, 1, runs[3]);
            writer.finish();
        }
        document->reload();
    }
    std::string label(const RunKey& key) const { return session.attributes(key).label; }
    void settle(LiveWhatIf& what_if) {
        for (int i = 0; i < 4; ++i) {
            what_if.update(session, nullptr);
            tasks.wait();
        }
        what_if.update(session, nullptr);
    }
};

}  // namespace

TEST_CASE("runs keep their ids while others are added, removed and written to the file") {
    GrowingTrace trace;
    Document& document = *trace.document;
    Session& session = trace.session;
    const auto labels = sample_runs();
    const RunKey in_file = document.key_of(0, 2), pending = document.key_of(0, 5);
    const RunKey of_file{document.id(), 0, document.add_run(0, what_if_of(2), in_file.run)};
    const RunKey of_pending{document.id(), 0, document.add_run(0, what_if_of(5), pending.run)};
    CHECK(document.is_pending(pending.run));
    CHECK(document.is_what_if(of_pending.run));
    session.selection.select_run(of_pending);
    session.pair.a = of_file;
    session.pair.b = pending;
    session.set_visible(in_file, false);

    const auto all_stand = [&] {
        CHECK(trace.label(in_file) == labels[2].label);
        CHECK(trace.label(pending) == labels[5].label);
        CHECK(trace.label(of_file) == labels[2].label + " what-if");
        CHECK(trace.label(of_pending) == labels[5].label + " what-if");
        CHECK(!session.is_visible(in_file));
        CHECK(session.cursor().run == of_pending);
        const auto shown = session.all_runs();
        CHECK(std::find(shown.begin(), shown.end(), of_file) == std::find(shown.begin(), shown.end(), in_file) + 1);
        CHECK(std::find(shown.begin(), shown.end(), of_pending) == std::find(shown.begin(), shown.end(), pending) + 1);
    };
    all_stand();
    document.set_pending_runs(0, {{6, labels[6]}});  // comes before the what-ifs
    all_stand();
    trace.grow();
    CHECK(!document.is_pending(pending.run));
    CHECK(document.file()->n_runs(0) == 6);
    CHECK(session.at(pending).run == 5);
    all_stand();

    session.remove_added_run(of_file);
    CHECK(!session.exists(of_file));
    CHECK(!session.pair.a);
    CHECK(session.pair.b == pending);
    CHECK(trace.label(of_pending) == labels[5].label + " what-if");
    CHECK_THROWS_AS(session.at(of_file), std::out_of_range);
    const RunId next = document.add_run(0, what_if_of(2), in_file.run);
    CHECK(next != of_file.run);
    CHECK(!session.exists(of_file));
}

TEST_CASE("the runs of another file at the path get new ids") {
    GrowingTrace trace;
    Document& document = *trace.document;
    const RunKey snapkv = document.key_of(0, 1);
    trace.sample_of_another_policy();
    CHECK(!trace.session.exists(snapkv));
    CHECK(trace.label(document.key_of(0, 1)) == sample_runs()[3].label);
}

TEST_CASE("a what-if stays when another file at the path lacks its source") {
    GrowingTrace trace;
    Session& session = trace.session;
    session.selection.select_run(trace.document->key_of(0, 1));
    LiveWhatIf what_if;
    trace.settle(what_if);
    REQUIRE(what_if.has_source());
    what_if.budget() = 20;
    trace.settle(what_if);
    const RunKey result = what_if.result(session);
    REQUIRE(result.valid());
    REQUIRE(session.cursor().run == result);
    trace.sample_of_another_policy();
    CHECK_NOTHROW(trace.settle(what_if));
    CHECK(session.exists(result));
    CHECK(!what_if.result(session).valid());
}

TEST_CASE("selecting a what-if lets the sliders change its source, even if nothing was changed before") {
    GrowingTrace trace;
    Session& session = trace.session;
    Document& document = *trace.document;
    const RunId source = document.id_of(0, 1);
    const RunKey kept{document.id(), 0, document.add_run(0, what_if_of(1), source)};
    const bool was_another_selected = GENERATE(false, true);
    LiveWhatIf what_if;
    if (was_another_selected) {
        session.selection.select_run(document.key_of(0, 2));
        trace.settle(what_if);
    }
    session.selection.select_run(kept);
    trace.settle(what_if);
    REQUIRE(what_if.has_source());
    CHECK(what_if.source() == RunKey{document.id(), 0, source});
    what_if.budget() = 20;
    trace.settle(what_if);
    const RunKey result = what_if.result(session);
    REQUIRE(result.valid());
    const auto shown = document.shown_order(0);
    CHECK(std::count(shown.begin(), shown.end(), result.run) == 1);
}

TEST_CASE("places in the history exist when they are selected again") {
    GrowingTrace trace;
    Session& session = trace.session;
    const RunKey what_if{trace.document->id(), 0,
                         trace.document->add_run(0, what_if_of(2), trace.document->id_of(0, 2))};
    session.selection.select_run(trace.document->key_of(0, 1));
    session.selection.select_run(what_if);
    session.selection.select_token(3);
    session.selection.select_run(trace.document->key_of(0, 2));
    session.remove_added_run(what_if);
    while (session.selection.can_go_back()) {
        session.selection.back();
        const RunKey run = session.cursor().run;
        CHECK((!run.valid() || session.exists(run)));
    }
}

TEST_CASE("a what-if of a pending run can be kept and is saved with that run's number") {
    GrowingTrace trace;
    Document& document = *trace.document;
    const RunId source = document.id_of(0, 5);
    document.keep_run(document.add_run(0, what_if_of(5), source));
    REQUIRE(document.kept_what_ifs().size() == 1);
    CHECK(document.kept_what_ifs()[0].run_number == 5);
    CHECK(document.kept_what_ifs()[0].run == sample_runs()[5].label);
    trace.grow();
    REQUIRE(document.kept_what_ifs().size() == 1);
    CHECK(document.kept_what_ifs()[0].run_number == 5);
    CHECK(document.run_called(0, 5, sample_runs()[5].label) == source);
}

TEST_CASE("an answer belongs to the run that gave it and is lost with that run") {
    GrowingTrace trace;
    Document& document = *trace.document;
    const RunId source = document.id_of(0, 2);
    const RunId one = document.add_run(0, what_if_of(2), source), two = document.add_run(0, what_if_of(2), source);
    const int of_two = document.add_further_answer({document.id(), 0, two}, "who?");
    CHECK(document.run_of(*document.further_answer(of_two)) == two);
    document.remove_run(two);
    CHECK(!document.run_of(*document.further_answer(of_two))
               .valid());  // `one` has the same label, but gave another answer
    CHECK(document.place_of(0, one).has_value());
}

TEST_CASE("a run is found by its place even if another run's label has that number") {
    auto runs = sample_runs();
    runs[1].label = "3";
    trace::sample::TemporaryFolder folder;
    {
        const trace::sample::Options options;
        trace::Writer writer(folder / "t.h5", trace::sample::recipe, {.force = true, .generator = "sample"});
        writer.write_model(trace::sample::model(options));
        writer.write_prompt(0, trace::sample::prompt(options, 0));
        for (size_t i = 0; i < runs.size(); ++i) writer.write_run(0, static_cast<int>(i), runs[i]);
        writer.finish();
    }
    const trace::Reader reader(folder / "t.h5");
    analysis::FigureOptions options;
    options.runs = {3};
    CHECK(analysis::chosen_runs(reader, options) == std::vector<int>{3});
    options.runs = {"3"};
    CHECK(analysis::chosen_runs(reader, options) == std::vector<int>{1});
    options.runs = {99};
    CHECK_THROWS_AS(analysis::chosen_runs(reader, options), analysis::FigureError);
}

TEST_CASE("a replaced trace becomes a new document at the position of the old one") {
    GrowingTrace trace;
    Session& session = trace.session;
    write_runs(trace.folder / "second.h5", 1);
    const int second = session.open(trace.folder / "second.h5").id();
    const RunKey before = trace.document->key_of(0, 1);
    trace.document->add_run(0, what_if_of(2), trace.document->id_of(0, 2));
    session.selection.select_run(before);
    session.pair.a = before;
    CHECK(session.open(trace.path).id() == before.document);

    trace::sample::Options options;
    options.n_tokens = 30;
    trace::Writer writer(trace.path, trace::sample::recipe, {.force = true, .generator = "sample"});
    writer.write_model(trace::sample::model(options));
    const auto prompt = trace::sample::prompt(options, 0);
    writer.write_prompt(0, prompt);
    writer.write_run(0, 0, trace::sample::full_run(options, prompt));
    writer.finish();
    const Document& now = session.open(trace.path);
    CHECK(now.id() != before.document);
    CHECK(now.id() != second);
    CHECK(!session.exists(before));
    CHECK(!session.pair.a);
    CHECK(now.reader()->n_runs(0) == 1);
    REQUIRE(session.documents().size() == 2);
    CHECK(session.documents()[0]->id() == now.id());
    CHECK(session.documents()[1]->id() == second);
}

TEST_CASE("an unfinished trace is shown instead of the file that it will replace") {
    GrowingTrace trace;
    Session& session = trace.session;
    const int before = trace.document->id();
    trace::sample::Options options;
    options.n_tokens = 90;
    const auto prompt = trace::sample::prompt(options, 0);
    const auto runs = trace::sample::runs(options, prompt);
    trace::Writer writer(trace.path, R"({"another": "recipe"})", {.force = true, .generator = "sample"});
    writer.write_model(trace::sample::model(options));
    writer.write_prompt(0, prompt);
    CHECK(session.open(trace.path).id() == before);

    Document& written = session.open(trace.path, true);
    CHECK(written.id() != before);
    CHECK(written.reader()->prompt(0).n_tokens == 90);
    CHECK_NOTHROW(written.set_pending_runs(0, {{0, runs[0]}, {1, runs[1]}}));
    const RunKey second = written.key_of(0, 1);
    writer.write_run(0, 0, runs[0]);
    writer.write_run(0, 1, runs[1]);
    writer.finish();
    CHECK(session.open(trace.path, true).id() == second.document);
    CHECK(session.exists(second));
    CHECK_FALSE(written.is_pending(second.run));
    CHECK(written.file()->complete());
}

namespace {

/// Writes two prompts that share a context, and the given ones of their four runs.
void write_two_prompts(trace::Writer& writer, const std::vector<int>& first, const std::vector<int>& second) {
    trace::sample::Options options;
    options.n_questions = 2;
    writer.write_model(trace::sample::model(options));
    for (int i = 0; i < 2; ++i) {
        const auto prompt = trace::sample::prompt(options, i);
        writer.write_prompt(i, prompt);
        const auto runs = trace::sample::runs(options, prompt);
        for (const int run : i == 0 ? first : second) writer.write_run(i, run, runs[static_cast<size_t>(run)]);
    }
}

struct TwoPrompts {
    trace::sample::TemporaryFolder folder;
    std::filesystem::path path = folder / "two.h5";
    trace::Writer writer{path, trace::sample::recipe, {.force = true, .generator = "sample"}};
    Tasks tasks{[] {}};
    Session session{tasks};
};

}  // namespace

TEST_CASE("showing a prompt that lacks a run selects the same runs, not those at the same index") {
    TwoPrompts two;
    write_two_prompts(two.writer, {0, 1, 2, 3}, {0, 2, 3});
    Session& session = two.session;
    Document& document = session.open(two.path.string() + ".part");
    const std::string selected = session.attributes(document.key_of(0, 2)).label;
    const std::string b = session.attributes(document.key_of(0, 3)).label;
    session.selection.select_run(document.key_of(0, 2));
    session.pair.a = document.key_of(0, 1);
    session.pair.b = document.key_of(0, 3);
    session.show_prompt(document, 1);
    CHECK(session.attributes(session.cursor().run).label == selected);
    CHECK(!session.pair.a);  // this run is not finished yet
    REQUIRE(session.pair.b);
    CHECK(session.attributes(*session.pair.b).label == b);
}

TEST_CASE("runs in memory come after those of the file and are found by number") {
    TwoPrompts two;
    write_two_prompts(two.writer, {0, 1, 2, 3}, {3});
    Document& document = two.session.open(two.path, true);
    trace::sample::Options options;
    options.n_questions = 2;
    const auto runs = trace::sample::runs(options, trace::sample::prompt(options, 1));
    document.set_pending_runs(1, {{0, runs[0]}, {1, runs[1]}, {2, runs[2]}});
    two.session.selection.select_run(document.key_of(0, 2));
    const std::string label = two.session.attributes(two.session.cursor().run).label;
    two.session.show_prompt(document, 1);
    CHECK(two.session.attributes(two.session.cursor().run).label == label);
}

TEST_CASE("for a what-if, another prompt shows the counterpart of its source") {
    TwoPrompts two;
    write_two_prompts(two.writer, {0, 1, 2, 3}, {0, 1, 2, 3});
    two.writer.finish();
    Document& document = two.session.open(two.path);
    const RunId what_if = document.add_run(0, what_if_of(1), document.id_of(0, 1));
    document.add_run(1, what_if_of(3), document.id_of(1, 3));
    two.session.selection.select_run({document.id(), 0, what_if});
    two.session.show_prompt(document, 1);
    CHECK(two.session.cursor().run == document.key_of(1, 1));
}

TEST_CASE("if a file has fewer prompts than before, an existing prompt is shown") {
    TwoPrompts two;
    write_two_prompts(two.writer, {0, 1}, {0, 1});
    two.writer.finish();
    Document& document = two.session.open(two.path);
    two.session.show_prompt(document, 1);
    {
        trace::Writer writer(two.path, trace::sample::recipe, {.force = true, .generator = "sample"});
        trace::sample::Options options;
        options.n_questions = 2;
        writer.write_model(trace::sample::model(options));
        const auto prompt = trace::sample::prompt(options, 0);
        writer.write_prompt(0, prompt);
        writer.write_run(0, 0, trace::sample::runs(options, prompt)[0]);
        writer.finish();
    }
    CHECK(two.session.open(two.path).prompt == 0);
}

TEST_CASE("annotations of an unfinished trace are kept when it is finished") {
    TwoPrompts two;
    write_two_prompts(two.writer, {0, 1}, {0, 1});
    const auto unfinished = two.path.string() + ".part";
    Document& document = two.session.open(unfinished);
    document.write_note(3, 4, "before");
    save_annotations(document, nlohmann::json());
    document.annotations_changed = false;
    two.writer.finish();
    SECTION("and stays open meanwhile") {
        two.session.open(unfinished);
        CHECK(document.path() == two.path);
        CHECK(document.annotations_changed);
        document.write_note(5, 6, "after");
        save_annotations(document, nlohmann::json());
        Session later{two.tasks};
        CHECK(later.open(two.path).notes.size() == 2);
    }
    SECTION("and is opened anew") {
        Session later{two.tasks};
        Document& again = later.open(two.path);
        CHECK(again.notes.size() == 1);
        CHECK(again.annotations_changed);
        again.write_note(5, 6, "after");
        save_annotations(again, nlohmann::json());
        Session last{two.tasks};
        CHECK(last.open(two.path).notes.size() == 2);
    }
}

}  // namespace kvscope::gui
