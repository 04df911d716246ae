#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "common/json.h"

namespace kvscope::gui {

inline constexpr const char* workspace_extension = ".kvscope";

/// Settings that the app saves in $XDG_CONFIG_HOME/kvscope/settings.json (default ~/.config).
struct Settings {
    bool light = false;
    float ui_scale = 0;                      ///< 0: scale of the display
    bool csv_safe = false;                   ///< see Session::csv_safe
    std::vector<std::string> recent_traces;  ///< newest first; includes workspaces
    std::vector<std::string> recent_models;
    int width = 1600;
    int height = 1000;
    nlohmann::json layout;                           ///< views and their places; null at the first start
    std::map<std::string, nlohmann::json> layouts;   ///< saved layouts by name; each is a JSON object
    std::map<std::string, std::string> model_names;  ///< names given by the user, by fingerprint of the model
    std::string problem;                             ///< why the file or parts of it cannot be used; not saved

    [[nodiscard]] bool operator==(const Settings&) const = default;

    static constexpr size_t most_recent = 12;
    void remember_trace(const std::filesystem::path& path);
    void remember_model(const std::filesystem::path& path);
};

[[nodiscard]] std::filesystem::path settings_file();

/// Reads the settings. Missing and invalid parts have default values; `problem` reports invalid parts.
[[nodiscard]] Settings load_settings(const std::filesystem::path& file);

/// Writes the settings atomically. Renames a file that cannot be parsed, and keeps a file of a later version. Other
/// processes may have changed the file, so only changes since `before` are written, and lists are merged. `settings`
/// receives the result. Returns messages for the user. Throws std::runtime_error if the file cannot be written.
/// @param before the settings that this process last read or wrote; nullptr: write all members
std::vector<std::string> save_settings(Settings& settings, const std::filesystem::path& file,
                                       const Settings* before = nullptr);

}  // namespace kvscope::gui
