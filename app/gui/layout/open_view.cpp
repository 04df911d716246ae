#include "app/gui/layout/open_view.h"

#include <fmt/format.h>
#include <imgui.h>
#include <spdlog/spdlog.h>

#include "app/gui/window/frame_guard.h"

namespace kvscope::gui {

std::string OpenView::id() const { return fmt::format("{}-{}", kind->name, number); }

std::string OpenView::title() const {
    return number == 1 ? fmt::format("{}###{}", kind->title, id())
                       : fmt::format("{} {}###{}", kind->title, number, id());
}

namespace {

void draw_failure(OpenView& open, const Theme& theme) {
    ImGui::PushStyleColor(ImGuiCol_Text, theme.error);
    ImGui::TextWrapped("This view cannot be drawn: %s", open.failure->message.c_str());
    ImGui::PopStyleColor();
    if (ImGui::Button("Try again")) open.failure.reset();
    ImGui::SetItemTooltip("draws the view again; selecting another run has the same effect");
}

}  // namespace

void ViewGuard::draw(OpenView& open, Context& context) {
    if (open.failure && open.failure->shown != what_is_shown()) open.failure.reset();
    if (open.failure) return draw_failure(open, context.theme);
    const DrawingStacks before;
    try {
        open.view->draw(context);
    } catch (const analysis::NothingToShow& nothing) {
        before.restore();
        draw_nothing(context, nothing.what());
    } catch (const std::exception& error) {
        before.restore();
        note_failure(open, error.what());
    } catch (...) {
        before.restore();
        note_failure(open, "for an unknown reason");
    }
    open.view->end_call(context.host);
}

void ViewGuard::note_failure(OpenView& open, const std::string& message) {
    open.failure = {message, what_is_shown()};
    failures_.push_back(fmt::format("the view {} cannot be drawn: {}", open.kind->title, message));
    spdlog::error("{}", failures_.back());
    window_.draw_again();  // shows the message
}

std::string ViewGuard::what_is_shown() const {
    const RunKey run = session_.cursor().run;
    return fmt::format("{} {} {} {}", session_.documents().size(), run.prompt, run.run.number, session_.stamp(run));
}

}  // namespace kvscope::gui
