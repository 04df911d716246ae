#include "app/gui/saved/current_workspace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string>
#include <utility>

#include "app/gui/session/annotations.h"
#include "app/gui/session/session_state.h"
#include "app/gui/session/stored_json.h"
#include "app/gui/window/crash_log.h"

namespace kvscope::gui {

namespace {

std::filesystem::path workspaces_folder() { return state_folder() / "workspaces"; }

}  // namespace

CurrentWorkspace::CurrentWorkspace(Session& session, TraceSidecars& sidecars, OpenViews& views, Notices& notices)
    : session_(session), sidecars_(sidecars), views_(views), notices_(notices) {
    remove_unpacked_workspaces(workspaces_folder());  // workspaces of a crashed instance
}

CurrentWorkspace::~CurrentWorkspace() {
    unpacked_.clear();
    remove_unpacked_workspaces(workspaces_folder());
}

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
            throw WorkspaceError(document->name() + " is incomplete. A workspace can only contain finished traces");
        files.emplace_back(document->path(), name);
        if (document->annotations_changed)
            throw WorkspaceError("the notes on " + document->name() +
                                 " could not be saved and would be missing in the workspace");
        // The trace may have another name in the workspace, so the names of its annotations files are changed as well.
        const size_t n = document->path().filename().string().size();
        for (const auto& notes : annotation_files(document->path()))
            files.emplace_back(notes, name + notes.filename().string().substr(n));
    }
    nlohmann::json state = unknown_members_of(state_, {"session", "layout"});
    state["session"] = with_fields_of_later_versions(session_state(session_, names),
                                                     state_.value("session", nlohmann::json::object()));
    state["layout"] = views_.state();
    // Keeps the unpacked folders until the files are written, even if the program ends.
    const auto write = [path, state, files, in_use = unpacked_] {
        write_workspace(path, state, files);
        return path.string() + " saved with traces, layout and selection";
    };
    session_.tasks.once(write, [this, state](const std::string& said, bool is_error) {
        if (!is_error) state_ = state;
        notices_.add(said, is_error);
    });
}

CurrentWorkspace::Unpacked CurrentWorkspace::unpack(const std::filesystem::path& path) {
    const auto folder = workspaces_folder() / unpacking_folder_name(path);
    unpack_workspace(path, folder);
    auto in_use = std::make_shared<FolderInUse>(folder);
    // Reads again, because another instance may have removed the folder before it was marked as in use.
    return {folder, unpack_workspace(path, folder), std::move(in_use)};
}

void CurrentWorkspace::open(const std::filesystem::path& path) {
    const auto unpacked = std::make_shared<Unpacked>();
    const auto read = [path, unpacked] {
        *unpacked = unpack(path);
        return std::string();
    };
    session_.tasks.once(read,
                        [this, path, unpacked, before = finished_traces()](const std::string& said, bool is_error) {
                            if (is_error) return notices_.add(said, true);
                            close(before);
                            show(path, *unpacked);
                        });
}

void CurrentWorkspace::open_now(const std::filesystem::path& path) {
    try {
        show(path, unpack(path));
    } catch (const std::exception& error) {
        notices_.add(error.what(), true);
    }
}

std::vector<int> CurrentWorkspace::finished_traces() const {
    std::vector<int> finished;
    for (const auto& document : session_.documents())
        if (document->file()->complete()) finished.push_back(document->id());
    return finished;
}

void CurrentWorkspace::close(const std::vector<int>& documents) {
    sidecars_.save_annotations();
    std::vector<std::string> names;
    for (const int id : documents) {
        const Document* document = session_.document(id);
        if (!document) continue;
        names.push_back(document->name());
        session_.close(id);
    }
    if (!names.empty())
        notices_.add(fmt::format("closed {}. Reopen them with File > Open recent", fmt::join(names, ", ")));
}

void CurrentWorkspace::show(const std::filesystem::path& path, const Unpacked& unpacked) {
    const auto& [folder, state, in_use] = unpacked;
    unpacked_.push_back(in_use);
    for (const auto& problem : restore_session(session_, state.value("session", nlohmann::json::object()), folder))
        notices_.add(fmt::format("{}: {}", path.filename().string(), problem), true);
    sidecars_.take_in_as_shown();
    state_ = state;
    views_.restore(state.value("layout", nlohmann::json()));
    notices_.add(fmt::format("{} opened. Its traces are unpacked in {}", path.filename().string(), folder.string()));
}

}  // namespace kvscope::gui
