#include "app/gui/session/renaming.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "app/gui/session/annotations.h"
#include "app/gui/session/parse_selection.h"
#include "common/json.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui {
namespace {

using nlohmann::json;

struct TwoQuestions {
    trace::sample::TemporaryFolder folder;
    std::filesystem::path path = folder / "t.h5";
    Tasks tasks{[] {}};
    Session session{tasks};
    Document* document = nullptr;

    TwoQuestions() {
        trace::sample::Options options;
        options.n_questions = 2;
        trace::sample::write(path, options);
        document = &session.open(path);
    }
    std::string called(int prompt, int run) { return session.look(document->key_of(prompt, run)).label; }
};

json saved(const std::filesystem::path& trace) {
    std::ifstream file(annotations_path(trace));
    return json::parse(file);
}

}  // namespace

TEST_CASE("a run's label is saved with its prompt, number and recorded label") {
    TwoQuestions t;
    const RunKey run = t.document->key_of(0, 1);
    const std::string stamp = t.session.stamp(run);
    REQUIRE(can_rename_run(t.session, run));
    CHECK(alike_runs_in_other_prompts(t.session, run) == std::vector{t.document->key_of(1, 1)});
    set_run_label(t.session, run, "SnapKV, B = 16", true);
    CHECK(t.session.stamp(run) != stamp);
    CHECK(t.document->annotations_changed);
    CHECK(t.document->key_of(0, 1) == run);
    CHECK(t.session.look(run).recorded == "snapkv 16");
    CHECK(t.called(0, 1) == "SnapKV, B = 16");
    CHECK(t.called(1, 1) == "SnapKV, B = 16");
    CHECK(t.called(0, 2) == "snapkv 24");
    CHECK(t.session.look(t.document->key_of(0, 2)).recorded.empty());
    for (const char* name : {"run=SnapKV, B = 16", "run=snapkv 16"}) CHECK(parse_selection(t.session, name).run == run);

    save_annotations(*t.document, json());
    CHECK(saved(t.path)["labels"].size() == 2);
    Session again(t.tasks);
    const Document& reopened = again.open(t.path);
    CHECK(again.look(reopened.key_of(1, 1)).label == "SnapKV, B = 16");
    CHECK(reopened.file()->run(0, 1).given_label.empty());
    CHECK_FALSE(reopened.annotations_changed);

    // Restores the recorded label, in this prompt only.
    set_run_label(t.session, run, "", false);
    CHECK(t.called(0, 1) == "snapkv 16");
    CHECK(t.called(1, 1) == "SnapKV, B = 16");
    set_run_label(t.session, run, "", true);
    save_annotations(*t.document, json());
    CHECK_FALSE(std::filesystem::exists(annotations_path(t.path)));
}

TEST_CASE("two runs of a prompt cannot have the same label, and a what-if keeps its label") {
    TwoQuestions t;
    const RunKey run = t.document->key_of(0, 1);
    for (const char* label : {"  ", "##a", "a###b"}) CHECK(!label_problem(t.session, run, label).empty());
    CHECK(label_problem(t.session, run, "aperturekv 20").find("aperturekv 20") != std::string::npos);
    set_run_label(t.session, run, "aperturekv 20", true);
    CHECK(t.called(0, 1) == "snapkv 16");
    set_run_label(t.session, run, "snapkv 16", true);  // the recorded label
    CHECK(t.document->given_labels().empty());
    CHECK_FALSE(t.document->annotations_changed);

    set_run_label(t.session, run, "mine", false);
    trace::RunRecord record = t.document->reader()->run_record(0, 1);
    record.label = "snapkv 16 (what-if)";
    const RunId what_if = t.document->add_run(0, record, run.run);
    CHECK_FALSE(can_rename_run(t.session, {t.document->id(), 0, what_if}));
    CHECK(t.session.look({t.document->id(), 0, what_if}).label == "snapkv 16 (what-if)");
    CHECK(t.called(0, 1) == "mine");
    t.document->reload();
    CHECK(t.called(0, 1) == "mine");
}

TEST_CASE("invalid labels, labels of other runs and those of a later version stay in the file") {
    TwoQuestions t;
    const json good = {{"prompt", 0}, {"run", "snapkv 16"}, {"run_number", 1}, {"label", "mine"}, {"later", 7}};
    const json gone = {{"prompt", 5}, {"run", "h2o 1"}, {"run_number", 9}, {"label", "theirs"}};
    json notes = {{"kvscope_notes", 1}, {"pins", json::object()}, {"notes", json::array()}, {"labels", {good, gone}}};
    SECTION("known") {
        std::ofstream(annotations_path(t.path)) << notes.dump();
        load_annotations(*t.document);
        CHECK(t.document->annotations_notices.empty());
        CHECK(t.called(0, 1) == "mine");
        set_run_label(t.session, t.document->key_of(0, 1), "ours", false);
        save_annotations(*t.document, json());
        const json labels = saved(t.path)["labels"];
        REQUIRE(labels.size() == 2);
        CHECK(labels[0] == gone);
        CHECK(labels[1]["label"] == "ours");
        CHECK(labels[1]["later"] == 7);
    }
    SECTION("damaged") {
        const auto label_of_gone = [&](const char* label) {
            json other = gone;
            other["label"] = label;
            return other;
        };
        // ImGui would not display the last two in full.
        notes["labels"][1] = GENERATE_COPY(json("snapkv"), label_of_gone("two##parts"), label_of_gone("  "));
        std::ofstream(annotations_path(t.path)) << notes.dump();
        load_annotations(*t.document);
        CHECK(t.called(0, 1) == "mine");
        REQUIRE(t.document->annotations_notices.size() == 1);
        CHECK(t.document->annotations_notices[0].find("labels[1]") != std::string::npos);
        CHECK(saved(t.path) == notes);
    }
}

}  // namespace kvscope::gui
