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

/// What the template's program is asked, on its standard input: to read a template, and, where there are messages, to
/// render them.
struct Request {
    std::string source;
    std::map<std::string, std::string> special_tokens;          ///< variables and their text
    std::vector<std::pair<std::string, std::string>> messages;  ///< role and content
    bool render = false;                                        ///< false: only whether the template is valid
    bool add_generation_prompt = false;
    std::optional<std::time_t> now;  ///< the present if there is none
};

/// What it answers, on its standard output.
struct Reply {
    enum class Kind : char {
        text = 't',     ///< the rendered text; empty where nothing was to be rendered
        invalid = 'i',  ///< the template is not valid Jinja: why
        refused = 'r',  ///< it called raise_exception: with what
        failed = 'f',   ///< it failed while it was rendered: why
    };
    Kind kind = Kind::failed;
    std::string text;
};

/// How the program ends where it cannot answer any more, apart from the signals that end it.
constexpr int exit_out_of_memory = 3;

std::string to_bytes(const Request& request);
/// @throws std::runtime_error for bytes that are no request
Request request_of(std::string_view bytes);

std::string to_bytes(const Reply& reply);
/// Nothing for bytes that are no reply.
std::optional<Reply> reply_of(std::string_view bytes);

}  // namespace kvscope::chat_template
