#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/gui/session/lifetime.h"

struct ImGuiInputTextCallbackData;

namespace kvscope::gui {

/// Asks for a file or folder in the window itself: a path to type, and the folder's contents to click or, from the
/// field, to step through with the arrow keys.
class FileDialog {
 public:
    enum class Kind { open, open_folder_or_file, save, folder };
    struct Question {
        Kind kind = Kind::open;
        std::string title;
        std::vector<std::string> extensions;  ///< ".h5", lower case: others are listed on demand; empty: all files
        std::filesystem::path suggestion;     ///< a file's name for `save`, whose extension a name without one gets; a
                                              ///< new folder's for `folder`
        std::function<void(const std::filesystem::path&)> answer;
        /// Why this path cannot be the answer: the dialog says so and stays open; empty: it may be.
        std::function<std::string(const std::filesystem::path&)> refusal = {};
        /// What has to be confirmed before this path is answered; empty: nothing. `save` asks before it replaces a
        /// file.
        std::function<std::string(const std::filesystem::path&)> objection = {};
        /// Of the view that asks: when it is gone, the dialog closes without an answer. Unset: the window itself asks.
        LifetimeWatch asker = {};
    };

    void ask(Question question);
    /// Once a frame. @param draw_above draws a question that may come while the dialog is open, which stays then
    /// @returns whether the dialog is open, and has called draw_above
    bool draw(const std::function<void()>& draw_above = {});

 private:
    struct Entry {
        std::string name;
        bool is_folder;
        uintmax_t bytes;
    };
    void list_folder();
    /// What the field names: of a file to save without an extension, with the suggested one's.
    std::filesystem::path typed_path() const;
    /// The entry after (step 1) or before (−1) the typed one; the first that begins like it where it is none.
    const Entry* neighbour(std::string_view typed, int step) const;
    static int step_through(ImGuiInputTextCallbackData* data);
    std::string objection_to(const std::filesystem::path& path) const;
    void go_to(const std::filesystem::path& folder);
    /// The box that lists files with other extensions, too.
    void draw_filter();
    /// The folder's contents. @returns whether a file was double-clicked
    bool draw_entries();
    /// @returns whether Enter was pressed in it
    bool draw_field();
    /// What is wrong, or which folder it would be.
    void draw_remark(const std::filesystem::path& path) const;
    /// @returns whether the path is accepted
    bool draw_buttons(const std::filesystem::path& path) const;
    /// Whether it is a folder to look into, not one that answers the question.
    bool is_entered(const std::filesystem::path& path) const;
    /// Why the path cannot be the answer; empty: it may be.
    std::string error_of(const std::filesystem::path& path) const;
    /// The path was accepted: answers the question, looks into a folder, or says what is wrong.
    void choose(const std::filesystem::path& path);

    Question question_;
    std::filesystem::path folder_;
    std::string typed_;
    std::string error_;
    std::vector<Entry> entries_;
    bool lists_all_ = false;  ///< also files with other extensions
    bool wanted_ = false;
    bool focus_field_ = false;
    bool scroll_to_typed_ = false;
    std::string objected_to_;  ///< path that a further click confirms
};

/// What was typed as a path, with "~" and "~/…" as a shell reads them.
std::filesystem::path without_tilde(const std::string& typed);

}  // namespace kvscope::gui
