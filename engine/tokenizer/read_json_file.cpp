#include "engine/tokenizer/read_json_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "engine/files/checkpoint_error.h"
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

namespace {

template <class Json>
Json read_object(const std::filesystem::path& file, Json (*parse)(std::string_view)) {
    const std::string text = read_text_file(file);
    Json json;
    try {
        json = parse(text);
    } catch (const std::runtime_error& error) {
        throw CheckpointError(file, error.what());
    }
    if (!json.is_object()) throw CheckpointError(file, "expected a JSON object");
    return json;
}

}  // namespace

nlohmann::json read_json_file(const std::filesystem::path& file) { return read_object(file, parse_json); }

nlohmann::ordered_json read_ordered_json_file(const std::filesystem::path& file) {
    return read_object(file, parse_ordered_json);
}

}  // namespace kvscope::checkpoint
