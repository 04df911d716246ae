#include "app/gui/session/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <type_traits>

#include "app/gui/session/stored_json.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;

constexpr const char* settings_key = "kvscope_settings";
constexpr int settings_version = 1;

void remember(std::vector<std::string>& list, const fs::path& path) {
    std::error_code error;
    const fs::path whole = fs::absolute(path, error);
    const std::string text = (error ? path : whole).lexically_normal().string();
    std::erase(list, text);
    list.insert(list.begin(), text);
    if (list.size() > Settings::most_recent) list.resize(Settings::most_recent);
}

}  // namespace

void Settings::remember_trace(const fs::path& path) { remember(recent_traces, path); }
void Settings::remember_model(const fs::path& path) { remember(recent_models, path); }

fs::path settings_file() {
    if (const char* config = std::getenv("XDG_CONFIG_HOME"); config && *config)
        return fs::path(config) / "kvscope" / "settings.json";
    const char* home = std::getenv("HOME");
    return fs::path(home ? home : ".") / ".config" / "kvscope" / "settings.json";
}

Settings load_settings(const fs::path& path) {
    const StoredJson stored = read_stored_json(path, settings_key, settings_version);
    Settings read;
    read.problem = stored.why;
    if (stored.state == StoredJson::State::newer) read.problem += ": it is left as it is, and nothing is remembered";
    std::string wrong;
    const auto take = [&](const char* key, auto& value) {
        try {
            if (stored.contents.contains(key)) value = stored.contents[key].get<std::decay_t<decltype(value)>>();
        } catch (const nlohmann::json::exception&) {
            wrong += fmt::format("{}{}", wrong.empty() ? "" : ", ", key);
        }
    };
    take("light", read.light);
    take("ui_scale", read.ui_scale);
    take("recent_traces", read.recent_traces);
    take("recent_models", read.recent_models);
    take("width", read.width);
    take("height", read.height);
    take("layout", read.layout);
    read.ui_scale = std::clamp(read.ui_scale, 0.0f, 4.0f);
    read.width = std::clamp(read.width, 320, 16384);
    read.height = std::clamp(read.height, 240, 16384);
    if (!wrong.empty())
        read.problem = fmt::format("{} is damaged: {} cannot be understood, and is as at first", path.string(), wrong);
    return read;
}

std::vector<std::string> save_settings(const Settings& settings, const fs::path& path) {
    const StoredJson stored = read_stored_json(path, settings_key, settings_version);
    if (stored.state == StoredJson::State::newer) return {};
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    std::vector<std::string> told;
    nlohmann::json json = stored.contents;
    if (stored.state != StoredJson::State::absent && (!settings.problem.empty() || !stored.why.empty())) {
        const fs::path aside = set_aside(path);
        told.push_back(fmt::format("{}: it is kept as {}", settings.problem.empty() ? stored.why : settings.problem,
                                   aside.filename().string()));
    }
    json.emplace(settings_key, settings_version);
    json["light"] = settings.light;
    json["ui_scale"] = settings.ui_scale;
    json["recent_traces"] = settings.recent_traces;
    json["recent_models"] = settings.recent_models;
    json["width"] = settings.width;
    json["height"] = settings.height;
    json["layout"] = settings.layout;
    write_stored_json(path, json);
    return told;
}

}  // namespace kvscope::gui
