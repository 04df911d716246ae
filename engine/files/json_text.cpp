#include "engine/files/json_text.h"

#include <fmt/format.h>

#include <stdexcept>

#include "common/bounded_json.h"
#include "engine/files/checkpoint_error.h"
#include "engine/files/content_kind.h"
#include "engine/files/file_reader.h"

namespace kvscope::checkpoint {
namespace {

template <class Json>
Json parse(std::string_view text) {
    if (const size_t at = bounded_json::too_deep_at(text); at < text.size())
        throw std::runtime_error(
            fmt::format("is nested more than {} levels deep at byte {}", bounded_json::deepest, at + 1));
    try {
        return bounded_json::parse<Json>(text);
    } catch (const nlohmann::json::parse_error& error) {
        if (const std::string kind = kind_of_content(text); !kind.empty())
            throw std::runtime_error(fmt::format("is {}, expected JSON", kind));
        // The library's own message quotes text that may be long or unprintable.
        throw std::runtime_error(
            error.byte > text.size()
                ? fmt::format("is truncated and not valid JSON: it ends after {} bytes", text.size())
                : fmt::format("is not valid JSON: error at byte {} of {}", error.byte, text.size()));
    } catch (const nlohmann::json::out_of_range&) {
        throw std::runtime_error("is not supported JSON: a number in it is larger than the largest double");
    }
}

}  // namespace

nlohmann::json parse_json(std::string_view text) { return parse<nlohmann::json>(text); }

template <class Json>
Json read_json_object(const std::filesystem::path& file, uint64_t limit) {
    const std::string text = read_text_file(file, limit);
    Json json = with_file_in_errors(file, [&] { return parse<Json>(text); });
    if (!json.is_object())
        throw CheckpointError(file, fmt::format("expected a JSON object, found {}", json.type_name()));
    return json;
}

template nlohmann::json read_json_object(const std::filesystem::path& file, uint64_t limit);
template nlohmann::ordered_json read_json_object(const std::filesystem::path& file, uint64_t limit);

}  // namespace kvscope::checkpoint
