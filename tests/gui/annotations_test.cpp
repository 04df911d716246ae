#include "app/gui/session/annotations.h"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>

#include "app/gui/saved/trace_sidecars.h"
#include "app/gui/session/engine_session.h"
#include "app/gui/session/session_state.h"
#include "app/gui/session/settings.h"
#include "app/gui/session/workspace_file.h"
#include "common/json.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/gui/small_model.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string bytes_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void put(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

fs::path notes_of(const SampleTrace& sample) { return sample.path.string() + ".notes.json"; }

/// While this exists, no file can grow beyond this size, as on a full disk.
class FullDisk {
 public:
    explicit FullDisk(rlim_t bytes) : before_(std::signal(SIGXFSZ, SIG_IGN)) {
        getrlimit(RLIMIT_FSIZE, &limit_);
        const rlimit small{bytes, limit_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &small);
    }
    FullDisk(const FullDisk&) = delete;
    FullDisk& operator=(const FullDisk&) = delete;
    ~FullDisk() {
        setrlimit(RLIMIT_FSIZE, &limit_);
        std::signal(SIGXFSZ, before_);
    }

 private:
    rlimit limit_{};
    void (*before_)(int);
};

bool is_told(const std::vector<std::string>& notices, const std::string& part) {
    return std::any_of(notices.begin(), notices.end(),
                       [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

const json two_notes = {{"kvscope_notes", 1},
                        {"pins", {{"0", {1, 3}}}},
                        {"notes",
                         {{{"prompt", 0}, {"tokens", {2, 3}}, {"text", "the needle"}},
                          {{"prompt", 0}, {"tokens", {5, 5}}, {"text", "a name"}}}}};

}  // namespace

TEST_CASE("unreadable notes are reported, kept and never overwritten") {
    const SampleTrace sample;
    const fs::path file = notes_of(sample);
    std::string text = two_notes.dump(1);
    json damaged = two_notes;
    bool shows_rest = true;
    SECTION("a missing bracket") {
        text.resize(text.rfind(']'));
        shows_rest = false;
    }
    SECTION("not an object") {
        text = "[1, 2]";
        shows_rest = false;
    }
    SECTION("an empty file") {
        text.clear();
        shows_rest = false;
    }
    SECTION("a list with a hundred thousand levels") {
        text = R"({"kvscope_notes": 1, "notes": [{"prompt": 0, "tokens": [1, 2], "text": "x", "extra": )" +
               std::string(100'000, '[') + std::string(100'000, ']') + "}]}";
        shows_rest = false;
    }
    SECTION("an invalid version") {
        damaged["kvscope_notes"] = "one";
        shows_rest = false;
        text = damaged.dump(1);
    }
    SECTION("a note with text as tokens") {
        damaged["notes"].push_back({{"prompt", 0}, {"tokens", {"seven", 8}}, {"text", "kept"}});
        text = damaged.dump(1);
    }
    SECTION("an object in place of a list") {
        damaged["further_answers"] = json::object();
        text = damaged.dump(1);
    }
    SECTION("pins without a prompt") {
        damaged["pins"]["first"] = {1};
        text = damaged.dump(1);
    }
    SECTION("text in place of a what-if") {
        damaged["what_ifs"] = {"snapkv"};
        text = damaged.dump(1);
    }
    SECTION("a number in place of a view") {
        damaged["view"] = 4;
        text = damaged.dump(1);
    }
    put(file, text);
    Tasks tasks([] {});
    Session session(tasks);
    Document& document = session.open(sample.path);
    CHECK(is_told(document.annotations_notices, "sample.h5.notes.json"));
    CHECK((document.note_on(2, 3) != nullptr) == shows_rest);
    CHECK((document.pins.size() == 1) == shows_rest);

    save_annotations(document, trace_display_state(session, document));
    CHECK(bytes_of(file) == text);

    document.write_note(7, 8, "typed since");
    document.annotations_notices.clear();
    save_annotations(document, trace_display_state(session, document));
    const fs::path aside = file.string() + ".unreadable-1";
    CHECK(bytes_of(aside) == text);
    CHECK(is_told(document.annotations_notices, "sample.h5.notes.json.unreadable-1"));
    Document reopened(1, sample.path);
    load_annotations(reopened);
    CHECK(reopened.annotations_notices.empty());
    REQUIRE(reopened.note_on(7, 8));
    CHECK((reopened.note_on(2, 3) != nullptr) == shows_rest);
    CHECK(reopened.pins == document.pins);
    document.write_note(7, 8, "");
    save_annotations(document, nullptr);
    CHECK(!fs::exists(file.string() + ".unreadable-2"));
}

TEST_CASE("notes that are temporarily unreadable are not overwritten, and are read later") {
    const SampleTrace sample;
    const fs::path file = notes_of(sample);
    fs::create_symlink(file, file);  // a link to itself: ELOOP
    Document document(0, sample.path);
    load_annotations(document);
    CHECK(is_told(document.annotations_notices, "cannot be read"));
    document.write_note(7, 8, "typed since");
    SECTION("the file becomes readable") {
        fs::remove(file);
        put(file, two_notes.dump());
        save_annotations(document, nullptr);
        Document reopened(1, sample.path);
        load_annotations(reopened);
        CHECK(reopened.notes.size() == 3);
        CHECK(reopened.pins.at(0).size() == 2);
    }
    SECTION("the file stays unreadable") {
        save_annotations(document, nullptr);
        CHECK(fs::is_symlink(file.string() + ".unreadable-1"));
        Document reopened(1, sample.path);
        load_annotations(reopened);
        CHECK(reopened.note_on(7, 8));
    }
}

TEST_CASE("notes of a later kvscope stay unchanged, and new notes are written to another file") {
    const SampleTrace sample;
    const fs::path file = notes_of(sample);
    const std::string text = R"({"kvscope_notes": 2, "notes": {"by": "another shape"}})";
    put(file, text);
    {
        Document document(0, sample.path);
        load_annotations(document);
        CHECK(is_told(document.annotations_notices, "version 2"));
        document.write_note(7, 8, "typed since");
        save_annotations(document, {{"prompt", 0}});
    }
    CHECK(bytes_of(file) == text);
    CHECK(annotation_files(sample.path).size() == 2);
    Document document(0, sample.path);
    load_annotations(document);
    CHECK(document.note_on(7, 8));
    CHECK(load_trace_display(sample.path) == json{{"prompt", 0}});
    document.write_note(7, 8, "");
    save_annotations(document, nullptr);
    CHECK(bytes_of(file) == text);
    CHECK(annotation_files(sample.path).size() == 1);
}

TEST_CASE("fields of a later minor version stay in the notes at every level") {
    const SampleTrace sample;
    const fs::path file = notes_of(sample);
    json later = two_notes;
    later["kvscope_notes"] = 1.4;
    later["authors"] = {"A", {{"deep", {1, 2}}}};
    later["notes"][0]["colour"] = {{"hue", 120}};
    later["further_answers"] = {{{"prompt", 0},
                                 {"run", "snapkv @ 4"},
                                 {"run_number", 1},
                                 {"question", "Who?"},
                                 {"answer", "She."},
                                 {"rating", 5}}};
    later["what_ifs"] = {{{"prompt", 0},
                          {"run", "snapkv @ 4"},
                          {"run_number", 1},
                          {"parameters", {{"window", 4}}},
                          {"budget", 8},
                          {"named", "mine"}}};
    later["view"] = {{"prompt", 0},
                     {"mark", "x"},
                     {"zoom", 3},
                     {"selection", {{"run", json::array()}, {"tokens", {1, 2}}, {"since", "today"}}}};
    put(file, later.dump());
    Tasks tasks([] {});
    Session session(tasks);
    Document& document = session.open(sample.path);
    CHECK(document.annotations_notices.empty());
    document.write_note(2, 3, "the needle, edited");
    document.toggle_pin(9);
    json view = trace_display_state(session, document);
    save_annotations(document, view);

    json expected = later;
    expected["notes"][0]["text"] = "the needle, edited";
    const json found = json::parse(bytes_of(file));
    CHECK(found["kvscope_notes"] == 1.4);
    CHECK(found["authors"] == later["authors"]);
    CHECK(found["pins"] == json{{"0", {1, 3, 9}}});
    CHECK(std::is_permutation(found["notes"].begin(), found["notes"].end(), expected["notes"].begin(),
                              expected["notes"].end()));
    CHECK(found["further_answers"] == later["further_answers"]);
    CHECK(found["what_ifs"] == later["what_ifs"]);
    CHECK(found["view"]["zoom"] == 3);
    CHECK(found["view"]["hidden"] == view["hidden"]);
    if (view.contains("selection")) CHECK(found["view"]["selection"]["since"] == "today");

    // The view state is the default again and the last note is removed. The file remains because of entries by others.
    document.notes.clear();
    document.pins.clear();
    save_annotations(document, nullptr);
    CHECK(json::parse(bytes_of(file))["view"] == json{{"zoom", 3}});
}

TEST_CASE("two windows with one trace keep each other's notes") {
    const SampleTrace sample;
    put(notes_of(sample), two_notes.dump());
    Document mine(0, sample.path);
    Document theirs(1, sample.path);
    load_annotations(mine);
    load_annotations(theirs);
    mine.write_note(7, 8, "mine");
    mine.toggle_pin(1);  // removes the pin
    save_annotations(mine, nullptr);
    theirs.write_note(9, 9, "theirs");
    theirs.write_note(5, 5, "");
    theirs.toggle_pin(4);
    save_annotations(theirs, nullptr);
    mine.write_note(7, 8, "mine, edited");
    save_annotations(mine, nullptr);
    Document reopened(2, sample.path);
    load_annotations(reopened);
    CHECK(reopened.notes.size() == 3);
    REQUIRE(reopened.note_on(7, 8));
    CHECK(reopened.note_on(7, 8)->text == "mine, edited");
    CHECK(reopened.note_on(9, 9));
    CHECK(!reopened.note_on(5, 5));
    CHECK(reopened.pins.at(0) == std::set<int64_t>{3, 4});
}

TEST_CASE("when the disk is full, notes stay in the file and in the window") {
    const SampleTrace sample;
    put(notes_of(sample), two_notes.dump());
    Document document(0, sample.path);
    load_annotations(document);
    document.write_note(7, 8, "typed since");
    {
        const FullDisk full(16);
        CHECK_THROWS_WITH(save_annotations(document, nullptr), Catch::Matchers::Contains("are not saved"));
    }
    CHECK(json::parse(bytes_of(notes_of(sample))) == two_notes);
    CHECK(std::distance(fs::directory_iterator(sample.folder.path()), {}) == 2);
    save_annotations(document, nullptr);
    Document reopened(1, sample.path);
    load_annotations(reopened);
    CHECK(reopened.notes.size() == 3);
}

TEST_CASE("a window that cannot save notes warns before it closes, and saves them once it can") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    Document& document = *driven.session().focus();
    {
        const FullDisk full(16);
        document.write_note(7, 8, "typed");
        driven.settle();
        CHECK(is_told(driven.app().notices(), "are not saved"));
        const size_t n = driven.app().notices().size();
        driven.settle();
        CHECK(driven.app().notices().size() == n);
        CHECK(!driven.app().may_close());
        CHECK(is_told(driven.app().notices(), "close again"));
    }
    CHECK(driven.app().may_close());
    Document reopened(1, sample.path);
    load_annotations(reopened);
    CHECK(reopened.note_on(7, 8));
}

TEST_CASE("a second attempt to close confirms the warning only for a short time") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    Tasks tasks([] {});
    Session session(tasks);
    Notices notices(*test_window());
    Document& document = session.open(sample.path);
    const FullDisk full(16);
    document.write_note(7, 8, "typed");
    TraceSidecars expired(session, notices, false, std::chrono::seconds(0));
    expired.save_annotations();
    CHECK(!expired.may_leave());
    CHECK(!expired.may_leave());
    TraceSidecars lasting(session, notices, false, std::chrono::hours(1));
    lasting.save_annotations();
    CHECK(!lasting.may_leave());
    CHECK(lasting.may_leave());
}

#ifdef KVSCOPE_WITH_ENGINE

TEST_CASE("a job continues while unsaved notes keep the window open") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    EngineSession& engine = *driven.app().engine();
    engine.load_model(small_model);
    REQUIRE(driven.draw_until([&] { return !engine.status().busy(); }, patience));
    TrainingRequest training;
    training.by_descent = true;
    training.steps = 100'000;
    training.output = sample.folder / "maps.safetensors";
    engine.train(training);
    REQUIRE(driven.draw_until([&] { return engine.status().state == EngineStatus::State::running; }, patience));
    {
        const FullDisk full(16);
        driven.session().focus()->write_note(7, 8, "typed");
        driven.draw_until([] { return false; }, 2);
        driven.drive([&](ImGuiTestContext& c) {
            CHECK(!driven.app().may_close());  // shows the question
            c.Yield(3);
            c.ItemClick("//Quit kvscope?/Quit");
            c.Yield(2);
        });
        CHECK(!driven.has_ended());
        CHECK(engine.status().state == EngineStatus::State::running);
    }
    CHECK(driven.app().may_close(true));
    CHECK(engine.status().state != EngineStatus::State::running);
    CHECK(driven.draw_until([&] { return !engine.status().busy(); }, patience));
}

#endif

TEST_CASE("unreadable settings are renamed, and settings of a later kvscope stay unchanged") {
    const trace::sample::TemporaryFolder folder;
    const fs::path file = folder / "settings.json";
    SECTION("a missing bracket") {
        put(file, R"({"light": true, "recent_traces": ["/a.h5")");
        Settings read = load_settings(file);
        CHECK(is_told({read.problem}, "line 1"));
        CHECK(is_told(save_settings(read, file), "settings.json.unreadable-1"));
        CHECK(bytes_of(folder / "settings.json.unreadable-1") == R"({"light": true, "recent_traces": ["/a.h5")");
        CHECK(load_settings(file).problem.empty());
    }
    SECTION("one wrong type") {
        const std::string text = R"({"light": "perhaps", "width": 1234, "later": {"x": 1}})";
        put(file, text);
        Settings read = load_settings(file);
        CHECK(is_told({read.problem}, "light"));
        CHECK(read.width == 1234);
        CHECK(save_settings(read, file).size() == 1);
        CHECK(bytes_of(folder / "settings.json.unreadable-1") == text);
        CHECK(json::parse(bytes_of(file))["later"] == json{{"x", 1}});
    }
    SECTION("unknown keys") {
        put(file, R"({"kvscope_settings": 1.2, "light": true, "later": {"x": 1}})");
        Settings read = load_settings(file);
        CHECK(read.problem.empty());
        read.light = false;
        CHECK(save_settings(read, file).empty());
        CHECK(json::parse(bytes_of(file))["later"] == json{{"x", 1}});
        CHECK(json::parse(bytes_of(file))["kvscope_settings"] == 1.2);
        CHECK(json::parse(bytes_of(file))["light"] == false);
    }
    SECTION("a later major version") {
        const std::string text = R"({"kvscope_settings": 2, "light": "another shape"})";
        put(file, text);
        Settings read = load_settings(file);
        CHECK(is_told({read.problem}, "version 2"));
        CHECK(save_settings(read, file).empty());
        CHECK(bytes_of(file) == text);
    }
    SECTION("a full disk") {
        put(file, R"({"light": true})");
        const FullDisk full(4);
        Settings settings;
        CHECK_THROWS_AS(save_settings(settings, file), std::runtime_error);
        CHECK(bytes_of(file) == R"({"light": true})");
    }
}

TEST_CASE("fields of a later kvscope stay in workspace and layout, and its workspace is not overwritten") {
    const json before = {{"later", 1},
                         {"mark", "old"},
                         {"selection", {{"step", 4}, {"since", "today"}}},
                         {"traces", {{{"path", "a.h5"}, {"colour", 2}}, {{"path", "gone.h5"}, {"colour", 3}}}}};
    const json now = {{"mark", "new"}, {"selection", {{"step", 5}}}, {"traces", {{{"path", "a.h5"}, {"prompt", 1}}}}};
    json expected = now;
    expected["later"] = 1;
    expected["selection"]["since"] = "today";
    expected["traces"][0]["colour"] = 2;
    CHECK(with_fields_of_later_versions(now, before) == expected);

    const trace::sample::TemporaryFolder folder;
    const fs::path file = folder / "w.kvscope";
    write_workspace(file, {{"session", json::object()}}, {});
    const std::string of_first = bytes_of(file);
    SECTION("of a later version") {
        write_workspace(file, {{"session", json::object()}, {"kvscope_workspace", 2}}, {});
        const std::string bytes = bytes_of(file);
        CHECK_THROWS_WITH(unpack_workspace(file, folder / "out"), Catch::Matchers::Contains("version 2"));
        CHECK_THROWS_WITH(write_workspace(file, {{"session", json::object()}}, {}),
                          Catch::Matchers::Contains("choose another name"));
        CHECK(bytes_of(file) == bytes);
    }
    SECTION("with a hundred thousand levels") {
        const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
        put(folder / "workspace.json", R"({"kvscope_workspace": 1, "later": )" + deep + "}");
        const std::string zip =
            "cd '" + folder.path().string() + "' && python3 -m zipfile -c deep.kvscope workspace.json";
        REQUIRE(std::system(zip.c_str()) == 0);
        CHECK_THROWS_AS(unpack_workspace(folder / "deep.kvscope", folder / "out"), WorkspaceError);
    }
    SECTION("on a full disk") {
        const FullDisk full(16);
        CHECK_THROWS_AS(write_workspace(file, {{"session", json::object()}}, {}), WorkspaceError);
        CHECK(bytes_of(file) == of_first);
        CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
    }

    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    json layout = driven.app().layout_state();
    const json view = {{"kind", "of_the_future"}, {"number", 1}, {"state", {{"x", 1}}}};
    layout["views"].push_back(view);
    driven.app().restore_layout(layout);
    driven.settle();
    CHECK(driven.app().layout_state()["views"].back() == view);
}

TEST_CASE("A and B alone stays off when the trace is reopened") {
    const SampleTrace sample;
    const auto is_alone_after = [&](std::optional<bool> alone) {
        Tasks tasks([] {});
        Session session(tasks);
        Document& document = session.open(sample.path);
        restore_trace_display(session, document, load_trace_display(document.path()));
        const auto runs = document.runs(0);
        if (!session.pair.is_complete()) {
            session.pair.a = RunKey{document.id(), 0, runs[1]};
            session.pair.b = RunKey{document.id(), 0, runs[2]};
        }
        if (alone) session.pair.alone = *alone;
        const bool is_alone = session.pair.alone;
        save_annotations(document, trace_display_state(session, document));
        return is_alone;
    };
    is_alone_after(true);
    CHECK(is_alone_after({}));
    is_alone_after(false);
    CHECK_FALSE(is_alone_after({}));
}

}  // namespace kvscope::gui::testing
