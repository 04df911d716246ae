#include "app/gui/view/file_dialog.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "analysis/tables/table_format.h"
#include "app/gui/view/text_field.h"
#include "common/lower_case.h"

namespace kvscope::gui {

namespace fs = std::filesystem;

fs::path expand_tilde(const std::string& typed) {
    const char* home = std::getenv("HOME");
    if (!home || !typed.starts_with('~') || (typed.size() > 1 && typed[1] != '/')) return typed;
    return fs::path(home) / typed.substr(std::min<size_t>(typed.size(), 2));
}

void FileDialog::ask(Question question) {
    question_ = std::move(question);
    std::error_code error;
    if (folder_.empty() || !fs::is_directory(folder_, error)) folder_ = fs::current_path(error);
    typed_ = question_.suggestion.string();
    error_.clear();
    objected_to_.clear();
    lists_all_ = false;
    list_folder();
    wanted_ = true;
}

void FileDialog::list_folder() {
    entries_.clear();
    marked_.clear();
    std::error_code error;
    for (auto at = fs::directory_iterator(folder_, error); !error && at != fs::directory_iterator();
         at.increment(error)) {
        const std::string name = at->path().filename().string();
        std::error_code ignored;
        const bool is_folder = at->is_directory(ignored);
        if (name.starts_with(".")) continue;
        const auto fits = [lower = lower_case(name)](const std::string& extension) {
            return lower.ends_with(extension);
        };
        if (!is_folder && question_.kind == Kind::folder) continue;
        if (!is_folder && !lists_all_ && !question_.extensions.empty() &&
            std::ranges::none_of(question_.extensions, fits))
            continue;
        entries_.push_back({name, is_folder, is_folder ? 0 : at->file_size(ignored)});
    }
    if (error) error_ = folder_.string() + " cannot be read: " + error.message();
    std::ranges::sort(entries_, [](const Entry& x, const Entry& y) {
        return x.is_folder != y.is_folder ? x.is_folder : strverscmp(x.name.c_str(), y.name.c_str()) < 0;
    });
}

const FileDialog::Entry* FileDialog::neighbour(std::string_view typed, int step) const {
    if (entries_.empty()) return nullptr;
    const auto last = std::ssize(entries_) - 1;
    const auto place = [&](auto fits) { return std::ranges::find_if(entries_, fits); };
    const auto same = place([&](const Entry& entry) { return entry.name == typed; });
    if (same != entries_.end()) return &entries_[std::clamp<ptrdiff_t>(same - entries_.begin() + step, 0, last)];
    const auto begun = place([&](const Entry& entry) { return entry.name.starts_with(typed); });
    if (begun != entries_.end() && !typed.empty()) return &*begun;
    return &entries_[step > 0 ? 0 : last];
}

int FileDialog::step_through(ImGuiInputTextCallbackData* data) {
    auto& dialog = *static_cast<FileDialog*>(data->UserData);
    const Entry* entry = dialog.neighbour({data->Buf, static_cast<size_t>(data->BufTextLen)},
                                          data->EventKey == ImGuiKey_DownArrow ? 1 : -1);
    if (!entry) return 0;
    data->DeleteChars(0, data->BufTextLen);
    data->InsertChars(0, entry->name.c_str());
    dialog.scroll_to_typed_ = true;
    return 0;
}

std::string FileDialog::objection_to(const fs::path& path) const {
    try {
        std::string objection = question_.objection ? question_.objection(path) : "";
        if (!objection.empty()) return objection;
    } catch (const std::exception& failure) {
        return failure.what();
    }
    std::error_code error;
    const bool is_there = fs::exists(fs::symlink_status(path, error));  // a broken link also counts as existing
    return question_.kind == Kind::save && is_there ? path.filename().string() + " already exists" : "";
}

void FileDialog::go_to(const fs::path& folder) {
    folder_ = folder.lexically_normal();
    if (folder_.filename().empty() && folder_.has_relative_path()) folder_ = folder_.parent_path();
    error_.clear();
    list_folder();
    focus_field_ = true;
}

bool FileDialog::draw(const std::function<void()>& draw_above) {
    const bool is_orphan = question_.asker.has_ended();
    if (is_orphan) wanted_ = false;
    const std::string popup = question_.title + "###file dialog";
    if (wanted_) {
        ImGui::OpenPopup(popup.c_str());
        wanted_ = false;
    }
    const float em = ImGui::GetFontSize();
    ImGui::SetNextWindowSize({46 * em, 30 * em}, ImGuiCond_Appearing);
    ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
    if (!ImGui::BeginPopupModal(popup.c_str(), nullptr, ImGuiWindowFlags_NoCollapse)) return false;
    if (is_orphan) {
        ImGui::CloseCurrentPopup();
        ImGui::EndPopup();
        return false;
    }
    if (ImGui::Button("Up") && folder_.has_parent_path()) go_to(folder_.parent_path());
    ImGui::SameLine();
    ImGui::TextDisabled("%s", folder_.c_str());
    draw_filter();
    bool is_chosen = draw_entries();
    is_chosen |= draw_field();
    const fs::path path = typed_path();
    draw_remark(path);
    const bool is_accepted = draw_buttons(path);
    if (question_.kind == Kind::open_several && (is_accepted || (is_chosen && marked_.size() > 1)))
        choose_marked(path);
    else if (is_chosen || is_accepted)
        choose(path);
    if (draw_above) draw_above();
    ImGui::EndPopup();
    return static_cast<bool>(draw_above);
}

fs::path FileDialog::typed_path() const {
    fs::path path = (folder_ / expand_tilde(typed_)).lexically_normal();  // an absolute path replaces the folder
    std::error_code error;
    const bool lacks_extension = question_.kind == Kind::save && path.has_filename() && !path.has_extension();
    if (lacks_extension && !fs::is_directory(path, error)) path += question_.suggestion.extension();
    return path;
}

bool FileDialog::draw_entries() {
    bool is_chosen = false;
    ImGui::BeginChild("entries", {0, -3.4f * ImGui::GetFrameHeightWithSpacing()}, ImGuiChildFlags_Borders);
    for (size_t i = 0; i < entries_.size(); ++i) {  // NOLINT(modernize-loop-convert): a click may change the entries
        const Entry entry = entries_[i];
        const std::string shown = entry.is_folder ? entry.name + "/" : entry.name;
        const bool is_typed = typed_ == entry.name;
        if (is_typed && std::exchange(scroll_to_typed_, false)) ImGui::SetScrollHereY();
        const bool is_marked = marked_.empty() ? is_typed : marked_.contains(entry.name);
        if (ImGui::Selectable(shown.c_str(), is_marked, ImGuiSelectableFlags_AllowDoubleClick)) {
            pick(entry.name);
            error_.clear();
            focus_field_ = true;
            const bool is_double_click = ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
            if (is_double_click && entry.is_folder) {
                go_to(folder_ / entry.name);
                typed_ = question_.suggestion.string();
                break;
            }
            is_chosen = is_chosen || is_double_click;
        }
        if (!entry.is_folder) {
            const std::string bytes = analysis::format_bytes(static_cast<double>(entry.bytes));
            ImGui::SameLine(ImGui::GetContentRegionMax().x - ImGui::CalcTextSize(bytes.c_str()).x);
            ImGui::TextDisabled("%s", bytes.c_str());
        }
    }
    if (entries_.empty()) ImGui::TextDisabled("no matching files");
    ImGui::EndChild();
    return is_chosen;
}

void FileDialog::draw_filter() {
    if (question_.extensions.empty() || question_.kind == Kind::folder) return;
    if (ImGui::Checkbox("all files", &lists_all_)) list_folder();
    ImGui::SetItemTooltip("off: lists only folders and %s",
                          fmt::format("{}", fmt::join(question_.extensions, ", ")).c_str());
}

bool FileDialog::draw_field() {
    ImGui::SetNextItemWidth(-FLT_MIN);
    if (ImGui::IsWindowAppearing() || std::exchange(focus_field_, false)) ImGui::SetKeyboardFocusHere();
    const bool is_entered = text_field("##path", "name or full path", &typed_,
                                       ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_CallbackHistory,
                                       &FileDialog::step_through, this);
    if (is_entered) focus_field_ = true;
    if (ImGui::IsItemEdited()) {
        error_.clear();
        marked_.clear();
    }
    return is_entered;
}

void FileDialog::draw_remark(const fs::path& path) const {
    std::error_code error;
    if (!error_.empty())
        ImGui::TextWrapped("%s", error_.c_str());
    else if (question_.kind == Kind::folder)
        ImGui::TextDisabled("%s%s", path.c_str(), fs::exists(path, error) ? "" : " (new folder)");
    else
        ImGui::NewLine();
}

bool FileDialog::draw_buttons(const fs::path& path) const {
    const bool saves = question_.kind == Kind::save || question_.kind == Kind::folder;
    std::string accept = objected_to_ == path ? "Replace" : saves ? "Save" : "Open";
    if (question_.kind == Kind::open_several)
        accept = typed_.empty()       ? "Add this folder"
                 : marked_.size() > 1 ? fmt::format("Add {}", marked_.size())
                                      : "Add";
    const bool is_accepted = ImGui::Button(accept.c_str());
    ImGui::SameLine();
    const bool has_keyboard =
        ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows | ImGuiFocusedFlags_NoPopupHierarchy);
    if (ImGui::Button("Cancel") || (has_keyboard && ImGui::IsKeyPressed(ImGuiKey_Escape))) ImGui::CloseCurrentPopup();
    return is_accepted;
}

std::string FileDialog::error_of(const fs::path& path) const {
    if (typed_.empty() && question_.kind != Kind::folder) return "choose an entry or enter a name";
    std::error_code error;
    const bool is_there = fs::exists(path, error);
    if (error) return fmt::format("{} cannot be used: {}", path.string(), error.message());
    if (question_.kind == Kind::folder && is_there && !fs::is_directory(path, error))
        return path.string() + " is a file; choose a folder";
    if (question_.kind == Kind::save && !fs::is_directory(path.parent_path(), error))
        return path.parent_path().string() + " is not a folder";
    return question_.refusal ? question_.refusal(path) : "";
}

bool FileDialog::is_entered(const fs::path& path) const {
    std::error_code error;
    const bool is_answer =
        question_.kind == Kind::folder || (question_.kind != Kind::open_several &&
                                           (fs::exists(path / "config.json", error) || path.extension() == ".part"));
    return fs::is_directory(path, error) && !is_answer;
}

void FileDialog::pick(const std::string& name) {
    const std::string before = std::exchange(typed_, name);
    if (question_.kind != Kind::open_several) return;
    const auto place = [&](const std::string& of) {
        return std::ranges::find(entries_, of, &Entry::name) - entries_.begin();
    };
    const ImGuiIO& io = ImGui::GetIO();
    if (!io.KeyCtrl && !io.KeyShift) marked_.clear();
    if (io.KeyShift && !marked_.empty()) {
        const auto [first, last] = std::minmax({place(before), place(name)});
        for (auto i = first; i <= last && i < std::ssize(entries_); ++i)
            marked_.insert(entries_[static_cast<size_t>(i)].name);
    } else if (!marked_.insert(name).second) {
        marked_.erase(name);
    }
    if (marked_.empty()) typed_.clear();
}

void FileDialog::choose_marked(const fs::path& path) {
    std::vector<fs::path> chosen;
    for (const std::string& name : marked_) chosen.push_back(folder_ / name);
    if (chosen.empty()) chosen.push_back(path);
    std::error_code error;
    for (const fs::path& one : chosen) {
        if (fs::exists(one, error)) continue;
        error_ = one.string() + " does not exist";
        return;
    }
    ImGui::CloseCurrentPopup();
    const auto answer = std::exchange(question_.answer, nullptr);
    for (const fs::path& one : chosen) answer(one);
}

void FileDialog::choose(const fs::path& path) {
    const bool has_name = !typed_.empty() || question_.kind == Kind::folder;
    if (has_name && is_entered(path)) {
        go_to(path);
        typed_ = question_.suggestion.string();
        return;
    }
    error_ = error_of(path);
    if (!error_.empty()) return;
    std::error_code error;
    const bool saves = question_.kind == Kind::save || question_.kind == Kind::folder;
    if (const std::string objection = objection_to(path); !objection.empty() && objected_to_ != path) {
        error_ = objection;
        objected_to_ = path;
    } else if (!saves && !fs::exists(path, error)) {
        error_ = path.string() + " does not exist";
    } else {
        ImGui::CloseCurrentPopup();
        const auto answer = std::exchange(question_.answer, nullptr);  // the answer may open the dialog again
        answer(path);
    }
}

}  // namespace kvscope::gui
