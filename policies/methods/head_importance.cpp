#include "policies/methods/head_importance.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "common/bounded_json.h"
#include "common/json.h"

namespace kvscope::policies {

namespace {

constexpr const char* how_to_make = " Create one with `kvscope profile-heads MODEL -o FILE`.";

[[noreturn]] void refuse_importances(const std::string& path, const std::string& why) {
    throw ImportanceError("Head importance '" + path + "': " + why + how_to_make);
}

bool read_number(std::string_view text, int& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return !text.empty() && error == std::errc{} && end == text.data() + text.size() && number >= 0;
}

size_t place_of(const std::string& path, std::string_view key, const ModelShape& shape) {
    const size_t dash = key.find('-');
    int layer = 0, head = 0;
    if (dash == std::string_view::npos || !read_number(key.substr(0, dash), layer) ||
        !read_number(key.substr(dash + 1), head)) {
        refuse_importances(path,
                           "expected names of the form \"layer-head\" (\"0-3\"), found \"" + std::string(key) + "\".");
    }
    if (layer >= shape.n_layers || head >= shape.n_heads) {
        refuse_importances(path, "it belongs to another model: it has layer " + std::to_string(layer) + ", head " +
                                     std::to_string(head) + ", but the model has " + std::to_string(shape.n_layers) +
                                     " layers of " + std::to_string(shape.n_heads) + " heads, counted from 0.");
    }
    return static_cast<size_t>(layer) * static_cast<size_t>(shape.n_heads) + static_cast<size_t>(head);
}

double mean_of(const std::string& path, const std::string& key, const nlohmann::json& scores) {
    const std::string where = "expected \"" + key + "\" to be a list of non-negative numbers, ";
    if (!scores.is_array()) refuse_importances(path, where + "found " + scores.type_name() + ".");
    if (scores.empty()) refuse_importances(path, where + "found an empty list.");
    double sum = 0.0;
    for (const nlohmann::json& score : scores) {
        if (!score.is_number()) refuse_importances(path, where + "found " + score.type_name() + " in the list.");
        const double value = score.get<double>();
        if (!std::isfinite(value) || value < 0.0)
            refuse_importances(path, where + "found " + score.dump() + " in the list.");
        sum += value;
    }
    return sum / static_cast<double>(scores.size());
}

}  // namespace

std::vector<double> read_head_importance(const std::string& path, const ModelShape& shape) {
    std::error_code error;
    std::ifstream file;
    if (std::filesystem::is_regular_file(path, error)) file.open(path, std::ios::binary);
    if (!file.is_open()) refuse_importances(path, "the file does not exist or cannot be read.");
    const nlohmann::json root = bounded_json::parse_or_discard(std::string{std::istreambuf_iterator<char>(file), {}});
    if (!root.is_object()) {
        refuse_importances(
            path, "expected a JSON object {\"layer-head\": [score, ...]}, found " +
                      (root.is_discarded() ? std::string("invalid JSON") : std::string(root.type_name())) + ".");
    }
    std::vector<double> importance(static_cast<size_t>(shape.n_layers * shape.n_heads), -1.0);
    for (const auto& [key, scores] : root.items()) {
        importance[place_of(path, key, shape)] = mean_of(path, key, scores);
    }
    const auto missing = std::find(importance.begin(), importance.end(), -1.0);
    if (missing != importance.end()) {
        const auto place = missing - importance.begin();
        refuse_importances(path, "expected all " + std::to_string(shape.n_layers) + " layers of " +
                                     std::to_string(shape.n_heads) + " heads, found " + std::to_string(root.size()) +
                                     " heads. The first missing head is \"" + std::to_string(place / shape.n_heads) +
                                     "-" + std::to_string(place % shape.n_heads) + "\".");
    }
    if (std::all_of(importance.begin(), importance.end(), [](double value) { return value == 0.0; })) {
        refuse_importances(path, "expected an importance above 0 for at least one head, found only 0.");
    }
    return importance;
}

}  // namespace kvscope::policies
