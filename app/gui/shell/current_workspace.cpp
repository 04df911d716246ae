#include "app/gui/shell/current_workspace.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/session/annotations.h"
#include "app/gui/session/session_state.h"
#include "app/gui/session/stored_json.h"
#include "app/gui/session/workspace.h"
#include "app/gui/shell/crash_log.h"

namespace kvscope::gui {

void CurrentWorkspace::save(const std::filesystem::path& path) {
    sidecars_.save_annotations();
    std::vector<std::pair<std::filesystem::path, std::string>> files;
    std::vector<std::filesystem::path> names;
    std::set<std::string> taken;
    for (const auto& document : session_.documents()) {
        std::string name = document->name();
        while (!taken.insert(name).second) name = "another-" + name;
        names.emplace_back(name);
        if (!document->file()->complete())
            throw WorkspaceError(document->name() + " is not complete yet: a workspace carries finished traces");
        files.emplace_back(document->path(), name);
        if (document->annotations_changed)
            throw WorkspaceError("the notes on " + document->name() + " could not be saved, and would not be in it");
        // Named as beside the trace, which has another name in there.
        const size_t n = document->path().filename().string().size();
        for (const auto& notes : annotation_files(document->path()))
            files.emplace_back(notes, name + notes.filename().string().substr(n));
    }
    nlohmann::json state = unknown_in(state_, {"session", "layout"});
    state["session"] = with_unknown(session_state(session_, names), state_.value("session", nlohmann::json::object()));
    state["layout"] = views_.state();
    write_workspace(path, state, files);
    state_ = std::move(state);
}

void CurrentWorkspace::open(const std::filesystem::path& path) {
    try {
        const auto folder = state_folder() / "workspaces" / workspace_folder_name(path);
        const auto state = read_workspace(path, folder);
        for (const auto& problem : restore_session(session_, state.value("session", nlohmann::json::object()), folder))
            notices_.add(problem, true);
        sidecars_.take_in_as_shown();
        state_ = state;
        views_.restore(state.value("layout", nlohmann::json()));
        notices_.add(fmt::format("{}: its traces are in {}", path.filename().string(), folder.string()));
    } catch (const std::exception& error) {
        notices_.add(error.what(), true);
    }
}

}  // namespace kvscope::gui
