#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/gui/session/settings.h"
#include "app/gui/shell/notices.h"
#include "app/gui/shell/open_views.h"
#include "app/gui/view/file_dialog.h"

namespace kvscope::gui {

/// Why a layout cannot be saved under this name, as a sentence; empty where it can.
std::string objection_to_layout_name(const std::string& name);

/// The layouts that a person has named: saved from how the views stand, applied, removed, and exchanged as files. They
/// hold which views are open and where, and nothing of what is set or typed in them.
class SavedLayouts {
 public:
    /// All are kept.
    SavedLayouts(Settings& settings, OpenViews& views, FileDialog& dialog, Notices& notices)
        : settings_(settings), views_(views), dialog_(dialog), notices_(notices) {}

    /// In the order of the alphabet.
    std::vector<std::string> names() const;
    /// Views that are open, or were put away, stay as they are set. Nothing where there is none of that name.
    void apply(const std::string& name);

    /// Asks for a name, and before it replaces one.
    void ask_to_save();
    void ask_to_remove(const std::string& name);
    /// As a JSON file.
    void ask_to_export();
    /// It is added and applied; one that cannot be understood becomes a notice and changes nothing.
    void ask_to_import();
    /// Once a frame: the questions.
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
    std::string removed_;  ///< that the question is about
    bool is_name_wanted_ = false;
    bool is_removal_wanted_ = false;
    std::string shown_;  ///< name of the one that was saved or applied last: what an export suggests
};

}  // namespace kvscope::gui
