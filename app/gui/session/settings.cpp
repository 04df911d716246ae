#include "app/gui/session/settings.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <thread>
#include <type_traits>

#include "app/gui/session/stored_json.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;

constexpr const char* settings_key = "kvscope_settings";
constexpr int settings_version = 1;

void put_first(std::vector<std::string>& list, const std::string& text) {
    std::erase(list, text);
    list.insert(list.begin(), text);
    if (list.size() > Settings::most_recent) list.resize(Settings::most_recent);
}

void remember(std::vector<std::string>& list, const fs::path& path) {
    std::error_code error;
    const fs::path whole = fs::absolute(path, error);
    put_first(list, (error ? path : whole).lexically_normal().string());
}

size_t n_new(const std::vector<std::string>& list, std::vector<std::string> before) {
    for (size_t n = 0; n < list.size(); ++n) {
        const size_t n_left = list.size() - n;
        if (n_left <= before.size() &&
            std::equal(list.end() - static_cast<std::ptrdiff_t>(n_left), list.end(), before.begin()))
            return n;
        std::erase(before, list[n]);
    }
    return list.size();
}

/// Merges the user's changes to a list into the list of the file. New entries come first.
std::vector<std::string> merged(const std::vector<std::string>& list, const std::vector<std::string>& before,
                                std::vector<std::string> in_file) {
    // A full list drops its oldest entries, but if the list is not full, the user has removed the missing entries.
    if (list.size() < Settings::most_recent)
        for (const std::string& old : before)
            if (std::ranges::find(list, old) == list.end()) std::erase(in_file, old);
    for (size_t n = n_new(list, before); n > 0; --n) put_first(in_file, list[n - 1]);
    return in_file;
}

template <class Value>
std::map<std::string, Value> entries_in(const nlohmann::json& json) {
    std::map<std::string, Value> entries;
    if (!json.is_object()) return entries;
    for (const auto& [name, value] : json.items()) {
        const bool fits = std::is_same_v<Value, std::string> ? value.is_string() : value.is_object();
        if (fits) entries[name] = value.template get<Value>();
    }
    return entries;
}

std::vector<std::string> list_in(const nlohmann::json& json, const char* key) {
    try {
        return json.contains(key) ? json[key].get<std::vector<std::string>>() : std::vector<std::string>();
    } catch (const nlohmann::json::exception&) {
        return {};
    }
}

/// Writes the entries that differ from `before` (all if it is nullptr) to `in_file`. `entries` receives the result.
template <class Value>
void put_entries(nlohmann::json& in_file, std::map<std::string, Value>& entries,
                 const std::map<std::string, Value>* before) {
    if (!before || !in_file.is_object()) in_file = nlohmann::json::object();
    if (before)
        for (const auto& [name, value] : *before)
            if (!entries.contains(name)) in_file.erase(name);
    for (const auto& [name, value] : entries) {
        const bool is_new = !before || !before->contains(name) || before->at(name) != value;
        if (is_new) in_file[name] = value;
    }
    entries = entries_in<Value>(in_file);
}

/// Locks a folder against other kvscope processes. Gives up after 0.1 s, so that the app does not block.
class FolderLock {
 public:
    explicit FolderLock(const fs::path& folder) : folder_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
        using std::chrono::milliseconds;
        for (int i = 0; i < 20 && folder_ >= 0 && flock(folder_, LOCK_EX | LOCK_NB) != 0; ++i)
            std::this_thread::sleep_for(milliseconds(5));
    }
    ~FolderLock() {
        if (folder_ >= 0) close(folder_);
    }
    FolderLock(const FolderLock&) = delete;
    FolderLock& operator=(const FolderLock&) = delete;

 private:
    int folder_;
};

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
    if (stored.state == StoredJson::State::newer) read.problem += ". It is not changed, and settings are not saved";
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
    take("csv_safe", read.csv_safe);
    take("recent_traces", read.recent_traces);
    take("recent_models", read.recent_models);
    take("width", read.width);
    take("height", read.height);
    take("layout", read.layout);
    const auto take_entries = [&](const char* key, auto& entries) {
        nlohmann::json stored_entries = nlohmann::json::object();
        take(key, stored_entries);
        entries = entries_in<typename std::decay_t<decltype(entries)>::mapped_type>(stored_entries);
        if (!stored_entries.is_object()) wrong += fmt::format("{}{}", wrong.empty() ? "" : ", ", key);
    };
    take_entries("layouts", read.layouts);
    take_entries("model_names", read.model_names);
    read.ui_scale = std::clamp(read.ui_scale, 0.0f, 4.0f);
    read.width = std::clamp(read.width, 320, 16384);
    read.height = std::clamp(read.height, 240, 16384);
    if (!wrong.empty())
        read.problem =
            fmt::format("{} is damaged: {} cannot be parsed, so the defaults are used", path.string(), wrong);
    return read;
}

std::vector<std::string> save_settings(Settings& settings, const fs::path& path, const Settings* before) {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    const FolderLock lock(path.parent_path());
    const StoredJson stored = read_stored_json(path, settings_key, settings_version);
    if (stored.state == StoredJson::State::newer) return {};
    std::vector<std::string> told;
    nlohmann::json json = stored.contents;
    if (!settings.problem.empty()) before = nullptr;  // the file could not be parsed, so write everything
    if (stored.state != StoredJson::State::absent && (!settings.problem.empty() || !stored.why.empty())) {
        const fs::path aside = set_aside(path);
        told.push_back(fmt::format("{}. The file was renamed to {}",
                                   settings.problem.empty() ? stored.why : settings.problem,
                                   aside.filename().string()));
    }
    json.emplace(settings_key, settings_version);
    const auto put = [&](const char* key, auto Settings::*member) {
        if (!before || settings.*member != before->*member || !json.contains(key)) json[key] = settings.*member;
    };
    const auto put_recent = [&](const char* key, std::vector<std::string> Settings::*member) {
        if (before) settings.*member = merged(settings.*member, before->*member, list_in(json, key));
        json[key] = settings.*member;
    };
    put("light", &Settings::light);
    put("ui_scale", &Settings::ui_scale);
    put("csv_safe", &Settings::csv_safe);
    put_recent("recent_traces", &Settings::recent_traces);
    put_recent("recent_models", &Settings::recent_models);
    put("width", &Settings::width);
    put("height", &Settings::height);
    put("layout", &Settings::layout);
    put_entries(json["layouts"], settings.layouts, before ? &before->layouts : nullptr);
    put_entries(json["model_names"], settings.model_names, before ? &before->model_names : nullptr);
    write_stored_json(path, json);
    return told;
}

}  // namespace kvscope::gui
