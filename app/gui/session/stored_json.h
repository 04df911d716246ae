#pragma once

#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

namespace kvscope::gui {

/// A JSON object that the window keeps in a file, and what stands between it and being understood.
struct StoredJson {
    enum class State {
        absent,
        unreadable,  ///< by the system: it may be sound
        damaged,     ///< no JSON object, or one without a version that is a number
        newer,       ///< of a major version that this program does not know
        sound,
    };
    State state = State::absent;
    nlohmann::json contents = nlohmann::json::object();
    std::string why;  ///< what is wrong with it, with its name; empty where it is absent or sound
};

/// @param version_key names its version, as in {"kvscope_notes": 1}; without it a file counts as of the first
StoredJson read_stored_json(const std::filesystem::path& file, const char* version_key, int version);

/// Whole or not at all, also on a full disk; texts that are not UTF-8 are replaced. @throws figures::OutputFailed
void write_stored_json(const std::filesystem::path& file, const nlohmann::json& contents);

/// Renames it to "….unreadable-1", or the next number that is free, for a person to mend. @returns the new name
/// @throws std::runtime_error where that fails
std::filesystem::path set_aside(const std::filesystem::path& file);

/// What an object holds besides what this program writes into it: a later one's.
nlohmann::json unknown_in(const nlohmann::json& object, std::initializer_list<const char*> known);

}  // namespace kvscope::gui
