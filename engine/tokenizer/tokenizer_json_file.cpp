#include "engine/tokenizer/tokenizer_json_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "engine/files/error.h"
#include "engine/files/json_text.h"

namespace kvscope::checkpoint {

std::string read_text_file(const std::filesystem::path& file) {
    std::error_code error;
    const auto size = std::filesystem::file_size(file, error);
    if (error) throw CheckpointError(file, "cannot be read: " + error.message());
    if (size > (std::uintmax_t{1} << 30)) throw CheckpointError(file, fmt::format("is too large ({} bytes)", size));
    if (!std::filesystem::is_regular_file(file, error)) throw CheckpointError(file, "is not a regular file");
    std::ifstream in(file, std::ios::binary);
    std::string text(static_cast<size_t>(size), '\0');
    if (!in || !in.read(text.data(), static_cast<std::streamsize>(text.size()))) {
        throw CheckpointError(file, std::string("cannot be read: ") + std::strerror(errno));
    }
    return text;
}

nlohmann::json read_json_file(const std::filesystem::path& file) {
    const std::string text = read_text_file(file);
    nlohmann::json json;
    try {
        json = parse_json(text);
    } catch (const std::runtime_error& error) {
        throw CheckpointError(file, error.what());
    }
    if (!json.is_object()) throw CheckpointError(file, "expected a JSON object");
    return json;
}

std::string special_token_text(const nlohmann::json& tokenizer_config, const char* key) {
    auto found = tokenizer_config.find(key);
    if (found == tokenizer_config.end()) return "";
    if (found->is_string()) return found->get<std::string>();
    if (found->is_object() && found->contains("content") && (*found)["content"].is_string()) {
        return (*found)["content"].get<std::string>();
    }
    return "";
}

}  // namespace kvscope::checkpoint
