#include "app/gui/settings.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;

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
    Settings settings;
    std::ifstream file(path);
    const auto json = nlohmann::json::parse(file, nullptr, false);
    if (!json.is_object()) return settings;
    try {
        Settings read;
        read.light = json.value("light", read.light);
        read.ui_scale = std::clamp(json.value("ui_scale", 0.0f), 0.0f, 4.0f);
        read.recent_traces = json.value("recent_traces", read.recent_traces);
        read.recent_models = json.value("recent_models", read.recent_models);
        read.width = std::clamp(json.value("width", read.width), 320, 16384);
        read.height = std::clamp(json.value("height", read.height), 240, 16384);
        read.layout = json.value("layout", nlohmann::json());
        return read;
    } catch (const nlohmann::json::exception&) {
        return settings;
    }
}

bool save_settings(const Settings& settings, const fs::path& path) {
    const nlohmann::json json = {
        {"light", settings.light},
        {"ui_scale", settings.ui_scale},
        {"recent_traces", settings.recent_traces},
        {"recent_models", settings.recent_models},
        {"width", settings.width},
        {"height", settings.height},
        {"layout", settings.layout},
    };
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    const fs::path beside = path.string() + ".new";
    {
        std::ofstream file(beside);
        // A path may hold any bytes.
        file << json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
        file.close();
        if (!file) return false;
    }
    fs::rename(beside, path, error);
    return !error;
}

}  // namespace kvscope::gui
