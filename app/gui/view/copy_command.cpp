#include "app/gui/view/copy_command.h"

#include <imgui.h>

#include <string_view>

#include "analysis/reproduce.h"

namespace kvscope::gui {
namespace {

std::string beginning_of(const std::string& command) {
    constexpr size_t most_shown = 300;
    if (command.size() <= most_shown) return command;
    const std::string_view shown = std::string_view(command).substr(0, most_shown);
    return std::string(shown.substr(0, shown.find_last_of(' '))) + " …";
}

}  // namespace

void copy_command_line(const std::function<std::string()>& command, const Notice& notice) {
    try {
        const std::string text = command();
        ImGui::SetClipboardText(text.c_str());
        notice("copied: " + beginning_of(text), false);
    } catch (const std::exception& error) {
        notice(error.what(), true);
    }
}

void copy_run_command(const Session& session, const RunKey& run, const Notice& notice) {
    copy_command_line(
        [&] {
            const RunAt at = session.at(run);
            return analysis::command_to_reproduce_run(*at.reader, at.prompt, at.run);
        },
        notice);
}

}  // namespace kvscope::gui
