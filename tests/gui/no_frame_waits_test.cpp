// Tests that no frame waits for another reader of a trace, because frames use background jobs.
#include <imgui_internal.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "app/gui/figure/export_dialog.h"
#include "tests/gui/busy_disk.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {}  // namespace

TEST_CASE("no frame waits while another thread reads a trace, whatever is drawn or under the mouse") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    for (const ViewKind& kind : view_kinds()) {
        CAPTURE(kind.name);
        DrivenApp driven(alone(sample, kind.name));
        driven.app().dismiss_start();
        Session& session = driven.session();
        const Document& document = *session.focus();
        session.selection.select_run(document.key_of(0, 1));
        session.selection.select_head(1, 1);
        session.selection.select_token(5);
        session.pair.a = document.key_of(0, 1);
        session.pair.b = document.key_of(0, 3);
        session.mark = "w1";
        driven.settle();
        driven.drive([&](ImGuiTestContext& c) {
            const ImGuiWindow* window = c.GetWindowByRef(("//" + kind.name + "-1").c_str());
            for (int tenth = 1; tenth < 10; tenth += 2) {
                c.MouseTeleportToPos({window->Pos.x + 0.4f * window->Size.x,
                                      window->Pos.y + window->Size.y * static_cast<float>(tenth) / 10});
                c.Yield(3);
                driven.app().tasks().wait();
                c.Yield(2);
                const auto still_open = document.reader();  // prevents a close that would wait
                session.open(sample.path);                  // discards everything that was read
                BusyDisk disk;
                c.Yield(3);
                CHECK(disk.end());
            }
        });
        driven.settle();
    }
}

TEST_CASE("no frame copies or closes a workspace's traces itself") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    setenv("XDG_STATE_HOME", (sample.folder / "state").c_str(), 1);
    DrivenApp driven(alone(sample, "retention"));
    driven.settle();
    const auto file = sample.folder / "w.kvscope";
    // While the worker is paused, only the app's main thread could write, unpack or close.
    std::atomic<bool> may_go_on = false;
    const auto hold = [&] {
        may_go_on = false;
        driven.app().tasks().once(
            [&] {
                while (!may_go_on) std::this_thread::yield();
                return std::string();
            },
            [](const std::string&, bool) {});
    };
    const auto go_on = [&] {
        may_go_on = true;
        driven.settle();
    };
    hold();
    driven.app().save_workspace(file);
    driven.draw_until([] { return false; }, 3);
    CHECK(!std::filesystem::exists(file));
    go_on();
    CHECK(std::filesystem::exists(file));
    CHECK(driven.app().notices().back().find("saved") != std::string::npos);

    hold();
    driven.app().open_workspace(file);
    driven.draw_until([] { return false; }, 3);
    CHECK(driven.session().documents().size() == 1);
    CHECK(!std::filesystem::exists(sample.folder / "state/kvscope/workspaces"));
    go_on();
    REQUIRE(driven.session().documents().size() == 1);
    CHECK(driven.session().documents().front()->path() != sample.path);

    hold();
    std::weak_ptr<const trace::Reader> closed = driven.session().documents().front()->file();
    driven.session().close(driven.session().documents().front()->id());
    driven.draw_until([] { return false; }, 3);
    CHECK(driven.session().documents().empty());
    CHECK(!closed.expired());
    go_on();
    CHECK(driven.app().n_errors() == 0);
    unsetenv("XDG_STATE_HOME");
}

TEST_CASE("numbers are copied as soon as they are read, and no frame waits for them") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(alone(sample, "head_divergence"));
    driven.settle();
    Session& session = driven.session();
    const auto request = driven.app().views().at(0)->view->figure(session);
    REQUIRE(request);
    const std::string expected = ExportDialog::numbers(session, *request, "tsv");
    std::string copied;
    driven.drive([&](ImGuiTestContext& c) {
        c.MouseMoveToPos(c.GetWindowByRef("//head_divergence-1")->Rect().GetCenter());
        c.MouseClick(ImGuiMouseButton_Right);
        c.Yield(2);
        c.SetRef("//$FOCUSED");
        BusyDisk disk;
        c.MenuClick("Copy numbers as/TSV");
        c.Yield(3);
        CHECK(disk.end());
        driven.app().tasks().wait();
        c.Yield(2);
        copied = ImGui::GetClipboardText();  // the test engine has its own clipboard
    });
    CHECK(copied == expected);
    REQUIRE(!driven.app().notices().empty());
    CHECK(driven.app().notices().back() == "Numbers copied as TSV");
}

}  // namespace kvscope::gui::testing
