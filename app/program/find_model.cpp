#include "app/program/find_model.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/program/input_files.h"

namespace kvscope::program {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> from_environment(const char* name) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return fs::path(value);
}

struct HubName {
    std::string organisation;
    std::string name;
    fs::path file;  ///< path in the repository; empty for the whole repository
};

/// Whether a part of a path can be a part of a hub id: letters, digits, '-', '_', '.', but no leading '-' or '.'.
bool is_plain(const std::string& part) {
    return !part.empty() && part.front() != '.' && part.front() != '-' &&
           std::all_of(part.begin(), part.end(),
                       [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; });
}

std::optional<HubName> as_hub_name(const fs::path& path) {
    std::vector<std::string> parts;
    for (const auto& part : path) parts.push_back(part.string());
    if (parts.size() < 2 || !std::all_of(parts.begin(), parts.end(), is_plain)) return std::nullopt;
    HubName name{parts[0], parts[1], {}};
    for (size_t i = 2; i < parts.size(); ++i) name.file /= parts[i];
    return name;
}

/// Returns the snapshot of `main`, else the only snapshot, else an empty path.
fs::path snapshot_of(const fs::path& repository) {
    std::error_code error;
    std::string revision;
    std::ifstream(repository / "refs" / "main") >> revision;
    if (is_plain(revision) && fs::is_directory(repository / "snapshots" / revision, error))
        return repository / "snapshots" / revision;
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(repository / "snapshots", error)) all.push_back(entry.path());
    return all.size() == 1 ? all.front() : fs::path();
}

bool is_there(const fs::path& path) {
    std::error_code error;
    return fs::exists(fs::symlink_status(path, error));
}

/// Returns the only GGUF file of a snapshot without config.json, else the snapshot.
fs::path model_in(const fs::path& snapshot) {
    std::error_code error;
    if (is_there(snapshot / "config.json")) return snapshot;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(snapshot, error))
        if (entry.path().extension() == ".gguf") files.push_back(entry.path());
    return files.size() == 1 ? files.front() : snapshot;
}

}  // namespace

fs::path hub_cache() {
    for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
        if (const auto folder = from_environment(name)) return *folder;
    if (const auto home = from_environment("HF_HOME")) return *home / "hub";
    if (const auto cache = from_environment("XDG_CACHE_HOME")) return *cache / "huggingface" / "hub";
    return from_environment("HOME").value_or(".") / ".cache" / "huggingface" / "hub";
}

fs::path find_model(const fs::path& named) {
    if (named.empty()) return default_model();
    if (is_there(named)) return named;
    const auto hub = as_hub_name(named);
    if (!hub) return named;
    const std::string id = hub->organisation + "/" + hub->name;
    const fs::path repository = hub_cache() / ("models--" + hub->organisation + "--" + hub->name);
    const fs::path snapshot = snapshot_of(repository);
    if (snapshot.empty())
        throw std::runtime_error(named.string() + ": found neither a file or folder of this name nor the model " + id +
                                 " in the local hub cache (searched " + repository.string() +
                                 "). kvscope downloads nothing: download the model with `hf download " + id +
                                 "`, or give the path of a GGUF file or a model folder");
    if (hub->file.empty()) return model_in(snapshot);
    if (!is_there(snapshot / hub->file))
        throw std::runtime_error(named.string() + ": the model " + id +
                                 " is in the local hub cache, but without the file " + hub->file.string() +
                                 ": searched " + snapshot.string());
    return snapshot / hub->file;
}

}  // namespace kvscope::program
