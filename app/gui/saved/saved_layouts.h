#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/gui/layout/open_views.h"
#include "app/gui/session/settings.h"
#include "app/gui/view/file_dialog.h"
#include "app/gui/window/notices.h"
#include "common/json.h"

namespace kvscope::gui {

/// Returns a sentence that says why a layout cannot have this name, or "" if the name is valid.
[[nodiscard]] std::string objection_to_layout_name(const std::string& name);

/// Saves, applies, removes, exports and imports the user's layouts. A layout stores the open views and their places,
/// but not their settings or text.
class SavedLayouts {
 public:
    SavedLayouts(Settings& settings, OpenViews& views, FileDialog& dialog, Notices& notices)
        : settings_(settings), views_(views), dialog_(dialog), notices_(notices) {}

    [[nodiscard]] std::vector<std::string> names() const;
    /// Applies a layout without changing the settings of views. Does nothing if the name is unknown.
    void apply(const std::string& name);

    void ask_to_save();
    void ask_to_remove(const std::string& name);
    void ask_to_export();
    /// Asks for a file, adds its layout and applies the layout. An invalid file becomes a notice and changes nothing.
    void ask_to_import();
    void draw();

 private:
    void draw_name_question();
    void draw_removal();
    void export_to(const std::filesystem::path& path);
    void import_from(const std::filesystem::path& path);

    Settings& settings_;
    OpenViews& views_;
    FileDialog& dialog_;
    Notices& notices_;
    std::string typed_;
    std::string removed_;  ///< name of the layout that the question asks about
    bool is_name_wanted_ = false;
    bool is_removal_wanted_ = false;
    std::string shown_;  ///< name of the layout last saved or applied; the suggested file name of an export
};

}  // namespace kvscope::gui
