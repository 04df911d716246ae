#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/gui/session/callback_guard.h"

struct ImGuiInputTextCallbackData;

namespace kvscope::gui {

/// The app's dialog for choosing a file or folder by typing, by clicking, or with the arrow keys.
class FileDialog {
 public:
    enum class Kind { open, open_folder_or_file, open_several, save, folder };
    struct Question {
        Kind kind = Kind::open;
        std::string title;
        std::vector<std::string> extensions = {};  ///< allowed extensions in lower case, e.g. ".h5"; empty for all
        std::filesystem::path suggestion = {};  ///< for `save`: the file name; for `folder`: the name of a new folder
        /// Receives the chosen path. For `open_several`: called for each chosen file and folder.
        std::function<void(const std::filesystem::path&)> answer;
        /// Returns why a path is invalid, or an empty text. The dialog shows the reason and stays open.
        std::function<std::string(const std::filesystem::path&)> refusal = {};
        /// Returns what the user must confirm for a path, or an empty text. Replacing a file always needs confirmation.
        std::function<std::string(const std::filesystem::path&)> objection = {};
        /// Lifetime of the view that asks; unset if the app asks. Closing the view closes the dialog without an answer.
        LifetimeWatch asker = {};
    };

    void ask(Question question);
    /// Draws the dialog if it is open. Call once per frame. `draw_above` can draw a question above the dialog. Returns
    /// whether the dialog is open and has called `draw_above`.
    [[nodiscard]] bool draw(const std::function<void()>& draw_above = {});

 private:
    struct Entry {
        std::string name;
        bool is_folder;
        uintmax_t bytes;
    };
    void list_folder();
    [[nodiscard]] std::filesystem::path typed_path() const;
    /// Returns the next (`step` 1) or previous (−1) entry, or the first entry that begins with the typed text.
    [[nodiscard]] const Entry* neighbour(std::string_view typed, int step) const;
    [[nodiscard]] static int step_through(ImGuiInputTextCallbackData* data);
    [[nodiscard]] std::string objection_to(const std::filesystem::path& path) const;
    void go_to(const std::filesystem::path& folder);
    void draw_filter();
    [[nodiscard]] bool draw_entries();
    [[nodiscard]] bool draw_field();
    void draw_remark(const std::filesystem::path& path) const;
    [[nodiscard]] bool draw_buttons(const std::filesystem::path& path) const;
    [[nodiscard]] bool is_entered(const std::filesystem::path& path) const;
    [[nodiscard]] std::string error_of(const std::filesystem::path& path) const;
    void choose(const std::filesystem::path& path);
    /// Types an entry's name. For `open_several`, also marks the entry: Ctrl adds or removes it, Shift adds a range.
    void pick(const std::string& name);
    /// Answers with the marked entries, or with this path if none is marked.
    void choose_marked(const std::filesystem::path& path);

    Question question_;
    std::filesystem::path folder_;
    std::string typed_;
    std::string error_;
    std::vector<Entry> entries_;
    std::set<std::string> marked_;  ///< names of entries; for `open_several`
    bool lists_all_ = false;        ///< whether files with other extensions are listed
    bool wanted_ = false;
    bool focus_field_ = false;
    bool scroll_to_typed_ = false;
    std::string objected_to_;  ///< path that the next click confirms, or empty
};

/// Returns the typed path with "~" and "~/…" expanded to the home folder.
[[nodiscard]] std::filesystem::path expand_tilde(const std::string& typed);

}  // namespace kvscope::gui
