#pragma once

#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvscope::chat_template {

/// A request to the template program: parse a template and optionally render messages.
struct Request {
    std::string source;
    std::map<std::string, std::string> special_tokens;          ///< texts of the template's variables
    std::vector<std::pair<std::string, std::string>> messages;  ///< role and content
    bool render = false;                                        ///< whether to render after checking the template
    bool add_generation_prompt = false;
    std::optional<std::time_t> now;  ///< current time if empty
};

struct Reply {
    enum class Kind : char {
        text = 't',     ///< rendered text; empty if no rendering was requested
        invalid = 'i',  ///< reason why the template is not valid Jinja
        refused = 'r',  ///< message of raise_exception
        failed = 'f',   ///< reason why rendering failed
    };
    Kind kind = Kind::failed;
    std::string text;
};

inline constexpr int exit_out_of_memory = 3;

[[nodiscard]] std::string message_to_bytes(const Request& request);
[[nodiscard]] Request parse_request(std::string_view bytes);

[[nodiscard]] std::string message_to_bytes(const Reply& reply);
[[nodiscard]] std::optional<Reply> parse_reply(std::string_view bytes);

}  // namespace kvscope::chat_template
