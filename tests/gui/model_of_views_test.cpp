#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <thread>

#include "app/gui/drawing/heat_map.h"
#include "app/gui/session/session.h"
#include "app/gui/session/settings.h"
#include "app/gui/session/workspace_file.h"
#include "app/gui/view_data/prompt_text.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui {

namespace fs = std::filesystem;

TEST_CASE("a slot shows its last value until the newest is ready, and computes only the newest") {
    std::atomic<bool> may_end = true;
    Tasks tasks([] {});
    const TaskSlot<int> slot;
    const auto ask = [&](int n) {
        return tasks.ask(slot, "", std::to_string(n), [n, &may_end] {
            while (!may_end) std::this_thread::yield();
            return n;
        });
    };
    CHECK(ask(1).value == nullptr);
    tasks.wait();
    CHECK(*ask(1).value == 1);
    CHECK(ask(1).current);
    may_end = false;
    CHECK(*ask(2).value == 1);
    CHECK(!ask(2).current);
    CHECK(*ask(3).value == 1);
    CHECK(*ask(4).value == 1);
    may_end = true;
    tasks.wait();
    const auto newest = ask(4);
    CHECK(newest.current);
    CHECK(*newest.value == 4);
}

TEST_CASE("a task's exception is its result") {
    Tasks tasks([] {});
    const TaskSlot<int> slot;
    const auto ask = [&] { return tasks.ask(slot, "", "", []() -> int { throw std::runtime_error("no disk"); }); };
    ask();
    tasks.wait();
    CHECK(ask().error == "no disk");
    CHECK(ask().value == nullptr);
    CHECK(ask().current);
}

TEST_CASE("the selection has a history, as in a browser") {
    Selection selection;
    Cursor one;
    one.layer = 1;
    Cursor two;
    two.layer = 2;
    selection.set(one);
    selection.set(two);
    selection.set(two);
    selection.back();
    CHECK(selection.current() == one);
    selection.forward();
    CHECK(selection.current() == two);
    selection.back();
    selection.back();
    selection.back();
    CHECK(selection.current() == Cursor{});
    selection.set(one);
    CHECK(!selection.can_go_forward());
}

TEST_CASE("each level of a pyramid contains the maximum of the cells below") {
    const size_t columns = GENERATE(size_t{1}, size_t{64}, size_t{65}, size_t{1023}, size_t{4097});
    const auto reduce = GENERATE(Reduce::maximum, Reduce::largest_magnitude);
    std::vector<float> values(3 * columns);
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i * i));
    values[0] = NAN;
    const Pyramid pyramid = make_pyramid(values, 3, columns, reduce);
    for (size_t k = 0; k < pyramid.levels.size(); ++k) {
        const size_t span = size_t{1} << k;
        REQUIRE(pyramid.levels[k].columns == (columns + span - 1) / span);
        for (size_t row = 0; row < 3; ++row) {
            for (size_t column = 0; column < pyramid.levels[k].columns; ++column) {
                float expected = NAN;
                for (size_t i = column * span; i < std::min(columns, (column + 1) * span); ++i)
                    expected = combine_cells(reduce, expected, values[row * columns + i]);
                const float found = pyramid.levels[k].values[row * pyramid.levels[k].columns + column];
                if (std::isnan(expected) ? !std::isnan(found) : found != expected) {
                    FAIL("level " << k << ", row " << row << ", column " << column << ": " << found << ", expected "
                                  << expected);
                }
            }
        }
    }
}

TEST_CASE("tokens show white space and bytes that are not characters") {
    CHECK(shown_token(" Paris") == "·Paris");
    CHECK(shown_token("\r\n\t") == "␍↵→");
    CHECK(shown_token("東京") == "東京");
    CHECK(shown_token("\xE2\x82") == "⟨E2⟩⟨82⟩");
    CHECK(shown_token(std::string("\0", 1)) == "⟨00⟩");
}

TEST_CASE("a search finds text across tokens") {
    PromptText prompt;
    prompt.tokens = {"The", " tre", "aty of Par", "is, signed in paris"};
    for (const auto& token : prompt.tokens) {
        prompt.begins.push_back(prompt.text.size());
        prompt.text += token;
    }
    prompt.begins.push_back(prompt.text.size());
    using Spans = std::vector<std::pair<int64_t, int64_t>>;
    CHECK(analysis::find_text(prompt, "paris") == Spans{{2, 3}, {3, 3}});
    CHECK(analysis::find_text(prompt, "the treaty") == Spans{{0, 2}});
    CHECK(analysis::find_text(prompt, "London").empty());
    CHECK(analysis::find_text(prompt, "").empty());
}

TEST_CASE("settings are written and read unchanged, and a damaged file gives the defaults") {
    const trace::sample::TemporaryFolder folder;
    const fs::path file = folder / "deep/settings.json";
    Settings settings;
    settings.light = true;
    settings.ui_scale = 1.5f;
    for (int i = 0; i < 20; ++i) settings.remember_trace("/traces/" + std::to_string(i) + ".h5");
    settings.remember_trace("/traces/15.h5");
    settings.remember_model("/models/\xff.gguf");  // a path may be invalid UTF-8
    settings.layout = {{"views", nlohmann::json::array()}};
    CHECK(save_settings(settings, file).empty());
    const Settings read = load_settings(file);
    CHECK(read.light);
    CHECK(read.ui_scale == 1.5f);
    CHECK(read.recent_traces.size() == Settings::most_recent);
    CHECK(read.recent_traces[0] == "/traces/15.h5");
    CHECK(read.layout == settings.layout);
    std::ofstream(file) << R"({"light": "perhaps", "width": -4)";
    CHECK(!load_settings(file).light);
    std::ofstream(file) << R"({"light": "perhaps", "recent_traces": 4})";
    CHECK(load_settings(file).recent_traces.empty());
}

TEST_CASE("two windows keep each other's recent files and settings") {
    const trace::sample::TemporaryFolder folder;
    const fs::path file = folder / "settings.json";
    Settings at_first;
    at_first.remember_trace("/old.h5");
    save_settings(at_first, file);
    const Settings before = load_settings(file);
    Settings one = before;
    Settings other = before;
    one.remember_trace("/a.h5");
    one.remember_model("/m.gguf");
    one.light = true;
    save_settings(one, file, &before);
    other.remember_trace("/b.h5");
    other.remember_trace("/c.h5");
    other.ui_scale = 2;
    save_settings(other, file, &before);
    const Settings read = load_settings(file);
    CHECK(read.recent_traces == std::vector<std::string>{"/c.h5", "/b.h5", "/a.h5", "/old.h5"});
    CHECK(read.recent_models == std::vector<std::string>{"/m.gguf"});
    CHECK(read.light);
    CHECK(read.ui_scale == 2);
    CHECK(other.recent_traces == read.recent_traces);
    // An item that both had before moves to the front when it is opened again.
    Settings again = other;
    again.remember_trace("/old.h5");
    save_settings(again, file, &other);
    CHECK(load_settings(file).recent_traces == std::vector<std::string>{"/old.h5", "/c.h5", "/b.h5", "/a.h5"});
    // A full list drops its last item.
    const Settings full = again;
    for (int i = 0; i < 10; ++i) again.remember_trace("/new" + std::to_string(i) + ".h5");
    save_settings(again, file, &full);
    CHECK(load_settings(file).recent_traces == again.recent_traces);
    CHECK(again.recent_traces.size() == Settings::most_recent);
    CHECK(again.recent_traces.front() == "/new9.h5");
}

TEST_CASE("windows that save simultaneously lose no settings") {
    const trace::sample::TemporaryFolder folder;
    const fs::path file = folder / "settings.json";
    constexpr int n_windows = 4;
    std::vector<std::thread> windows;
    for (int w = 0; w < n_windows; ++w) {
        windows.emplace_back([&file, w] {
            const Settings before;
            Settings settings;
            settings.remember_trace("/" + std::to_string(w) + ".h5");
            save_settings(settings, file, &before);
        });
    }
    for (auto& window : windows) window.join();
    CHECK(load_settings(file).recent_traces.size() == n_windows);
}

TEST_CASE("a workspace with paths outside its folder, or an invalid workspace, is refused") {
    const trace::sample::TemporaryFolder folder;
    const fs::path file = folder / "bad.kvscope";
    std::ofstream(folder / "x") << "x";
    write_workspace(file, {{"session", 1}}, {{folder / "x", "../escaped"}});
    CHECK_THROWS_AS(unpack_workspace(file, folder / "out"), WorkspaceError);
    CHECK(!fs::exists(folder / "escaped"));
    std::ofstream(file) << "not a ZIP archive";
    CHECK_THROWS_AS(unpack_workspace(file, folder / "out"), WorkspaceError);
    write_workspace(file, {{"session", 1}}, {{folder / "x", "x"}});
    CHECK(unpack_workspace(file, folder / "out").at("session") == 1);
    CHECK(fs::exists(folder / "out/x"));
    CHECK_THROWS_AS(write_workspace(folder / "nowhere/w.kvscope", {}, {}), WorkspaceError);
}

TEST_CASE("the session keeps one selection, reuses open traces and handles closed ones") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "one.h5");
    trace::sample::write(folder / "two.h5");
    Tasks tasks([] {});
    Session session(tasks);
    Document& one = session.open(folder / "one.h5");
    CHECK(session.cursor().run.document == one.id());
    CHECK(session.attributes(session.cursor().run).policy != "full");
    CHECK(&session.open(folder / "." / "one.h5") == &one);
    Document& two = session.open(folder / "two.h5");
    CHECK(session.documents().size() == 2);
    CHECK(session.look(two.key_of(0, 0)).label.starts_with("two.h5: "));
    session.pair.a = one.key_of(0, 1);
    session.pair.b = two.key_of(0, 1);
    session.selection.select_run(two.key_of(0, 1));
    session.selection.select_token(3);
    session.selection.select_token(5, true);
    CHECK(session.cursor().contains(4));
    session.close(two.id());
    CHECK(!session.cursor().run.valid());
    CHECK(session.pair.a);
    CHECK(!session.pair.b);
    CHECK_THROWS(session.open(folder / "three.h5"));
    CHECK(session.documents().size() == 1);
}

}  // namespace kvscope::gui
