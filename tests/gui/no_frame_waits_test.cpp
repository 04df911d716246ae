// What a frame draws is computed beside it: none waits for whoever reads a trace.
#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <string>

#include "app/gui/figure/export_dialog.h"
#include "tests/gui/busy_disk.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

AppOptions alone(const SampleTrace& sample, const std::string& view) {
    AppOptions options;
    options.traces = {sample.path};
    options.view = view;
    return options;
}

}  // namespace

TEST_CASE("no frame waits while another thread reads a trace, whatever it draws and is under the mouse") {
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
                const auto still_open = document.reader();  // closing it would wait
                session.open(sample.path);                  // all is to be read anew
                BusyDisk disk;
                c.Yield(3);
                CHECK(disk.end());
            }
        });
        driven.settle();
    }
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
        copied = ImGui::GetClipboardText();  // the test engine has one of its own
    });
    CHECK(copied == expected);
    REQUIRE(!driven.app().notices().empty());
    CHECK(driven.app().notices().back() == "numbers copied as TSV");
}

}  // namespace kvscope::gui::testing
