#include "engine/checkpoint/json_text.h"

#include <fmt/format.h>

#include <stdexcept>

namespace kvscope::checkpoint {
namespace {

constexpr size_t deepest = 256;

/// Where the text nests deeper than that; its length where it does not. Counts brackets outside strings, which is what
/// the levels of a valid text are.
size_t too_deep_at(std::string_view text) {
    size_t depth = 0;
    bool in_string = false;
    for (size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (in_string) {
            if (c == '\\') ++at;
            if (c == '"') in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > deepest) return at;
        } else if ((c == ']' || c == '}') && depth > 0) {
            --depth;
        }
    }
    return text.size();
}

}  // namespace

nlohmann::json parse_json(std::string_view text) {
    if (text.starts_with("version https://git-lfs"))
        throw std::runtime_error("is a Git LFS pointer, not the file: run `git lfs pull` in its folder");
    if (const size_t at = too_deep_at(text); at < text.size())
        throw std::runtime_error(fmt::format("is nested more than {} levels deep at byte {}", deepest, at + 1));
    try {
        return nlohmann::json::parse(text);
    } catch (const nlohmann::json::parse_error& error) {
        // The library's own text quotes what it read last, however long and unprintable that is.
        throw std::runtime_error(
            error.byte > text.size()
                ? fmt::format("is cut off, and not valid JSON: it ends early, after {} bytes", text.size())
                : fmt::format("is not valid JSON: error at byte {} of {}", error.byte, text.size()));
    } catch (const nlohmann::json::out_of_range&) {
        throw std::runtime_error(
            "is not JSON that can be read: a number in it is larger than any that a computer holds");
    }
}

}  // namespace kvscope::checkpoint
