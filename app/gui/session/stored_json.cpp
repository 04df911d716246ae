#include "app/gui/session/stored_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <system_error>

#include "common/bounded_json.h"
#include "common/file_text.h"
#include "common/whole_file.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

StoredJson not_sound(StoredJson::State state, const fs::path& file, const std::string& why) {
    return {state, json::object(), fmt::format("{} {}", file.string(), why)};
}

StoredJson parsed_object(const fs::path& file, const std::string& text) {
    using State = StoredJson::State;
    if (bounded_json::too_deep_at(text) < text.size())
        return not_sound(State::damaged, file,
                         fmt::format("cannot be parsed: it is nested more than {} levels deep", bounded_json::deepest));
    try {
        json contents = json::parse(text);
        if (contents.is_object()) return {State::sound, std::move(contents), {}};
        return not_sound(State::damaged, file, "cannot be parsed: expected a JSON object");
    } catch (const json::parse_error& error) {
        const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
        const auto line = 1 + std::count(text.begin(), end, '\n');
        return not_sound(State::damaged, file,
                         fmt::format("cannot be parsed: it is not valid JSON from line {} on", line));
    } catch (const json::exception&) {
        return not_sound(State::damaged, file, "cannot be parsed: it is not JSON or contains a number out of range");
    }
}

}  // namespace

StoredJson read_stored_json(const fs::path& file, const char* version_key, int version) {
    using State = StoredJson::State;
    std::error_code error;
    const fs::file_status status = fs::status(file, error);
    if (status.type() == fs::file_type::not_found) return {};
    if (status.type() != fs::file_type::regular)
        return not_sound(State::unreadable, file,
                         "cannot be read: " + (error ? error.message() : "it is not a regular file"));
    StoredJson stored;
    try {
        stored = parsed_object(file, file_text(file));
    } catch (const std::system_error& unreadable) {
        return not_sound(State::unreadable, file, "cannot be read: " + unreadable.code().message());
    }
    if (stored.state != State::sound || !stored.contents.contains(version_key)) return stored;
    const json& found = stored.contents[version_key];
    if (!found.is_number())
        return not_sound(State::damaged, file, fmt::format("cannot be parsed: its {} is not a number", version_key));
    if (found.get<double>() < version + 1) return stored;
    return not_sound(State::newer, file,
                     fmt::format("has version {} and was written by a later kvscope", found.dump()));
}

void write_stored_json(const fs::path& file, const json& contents) {
    write_whole_file(file, contents.dump(1, ' ', false, json::error_handler_t::replace) + "\n", true);
}

fs::path set_aside(const fs::path& file) {
    std::error_code error;
    fs::path aside;
    for (int i = 1; i == 1 || fs::symlink_status(aside, error).type() != fs::file_type::not_found; ++i)
        aside = fmt::format("{}.unreadable-{}", file.string(), i);
    fs::rename(file, aside, error);
    if (error) throw std::runtime_error(fmt::format("{} cannot be renamed: {}", file.string(), error.message()));
    return aside;
}

json unknown_members_of(const json& object, std::initializer_list<const char*> known) {
    json rest = object.is_object() ? object : json::object();
    for (const char* key : known) rest.erase(key);
    return rest;
}

}  // namespace kvscope::gui
