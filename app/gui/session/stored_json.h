#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>

#include "common/json.h"

namespace kvscope::gui {

/// A JSON object read from a file of the app, or the reason why it cannot be used.
struct StoredJson {
    enum class State {
        absent,
        unreadable,  ///< cannot be read; the contents may be valid
        damaged,     ///< not a JSON object, or the version is not a number
        newer,       ///< has a newer major version
        sound,
    };
    State state = State::absent;
    nlohmann::json contents = nlohmann::json::object();
    std::string why;  ///< message with the file's name; empty if the file is missing or valid
};

/// @param version_key key of the version, as in {"kvscope_notes": 1}; a file without the key counts as version 1
[[nodiscard]] StoredJson read_stored_json(const std::filesystem::path& file, const char* version_key, int version);

/// Writes a JSON file atomically. Replaces invalid UTF-8. Throws FileNotWritten.
void write_stored_json(const std::filesystem::path& file, const nlohmann::json& contents);

/// Renames a damaged file to "….unreadable-N" with the first free N. Returns the new path. Throws std::runtime_error.
[[nodiscard]] std::filesystem::path set_aside(const std::filesystem::path& file);

/// Returns the members of an object that are not in `known`. A later version of kvscope wrote them.
[[nodiscard]] nlohmann::json unknown_members_of(const nlohmann::json& object, std::initializer_list<const char*> known);

}  // namespace kvscope::gui
