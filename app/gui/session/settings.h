#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kvscope::gui {

/// Of a workspace's file.
inline constexpr const char* workspace_extension = ".kvscope";

/// What the window remembers from one start to the next, in $XDG_CONFIG_HOME/kvscope/settings.json (~/.config).
struct Settings {
    bool light = false;
    float ui_scale = 0;                      ///< 0: the display's own
    bool csv_safe = false;                   ///< Session::csv_safe
    std::vector<std::string> recent_traces;  ///< newest first, workspaces among them
    std::vector<std::string> recent_models;
    int width = 1600;
    int height = 1000;
    nlohmann::json layout;                           ///< App's views and their places; null at the first start
    std::map<std::string, nlohmann::json> layouts;   ///< that a person has saved, by name; each an object
    std::map<std::string, std::string> model_names;  ///< that a person has chosen, by the model's fingerprint
    std::string problem;                             ///< why the file was not understood, or not all of it; not saved

    bool operator==(const Settings&) const = default;

    static constexpr size_t most_recent = 12;
    void remember_trace(const std::filesystem::path& path);
    void remember_model(const std::filesystem::path& path);
};

std::filesystem::path settings_file();

/// Defaults where there is no file, and for what cannot be understood of it, which `problem` tells.
Settings load_settings(const std::filesystem::path& file);

/// Whole or not at all; what a later kvscope put beside what this one knows stays. A file that could not be understood
/// is renamed first, and one that a later kvscope made is left as it is.
///
/// Another window may have written the file meanwhile: what is as it was `before` is left as that one has written it,
/// and what was opened since goes in front of the recent ones that are there; of the saved layouts those are written
/// that are new or other, and those go that were removed. `settings` then has these, too. From reading to writing no
/// other kvscope writes.
/// @param before as this window read the file, or wrote it last; nullptr: all is written as it is here
/// @returns what a person is to be told @throws std::runtime_error where it cannot be written
std::vector<std::string> save_settings(Settings& settings, const std::filesystem::path& file,
                                       const Settings* before = nullptr);

}  // namespace kvscope::gui
