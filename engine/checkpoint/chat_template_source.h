#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace kvscope::checkpoint {

struct ChatTemplateSource {
    std::string jinja;
    std::map<std::string, std::string> special_tokens;  ///< bos_token, eos_token, ...: variables of the template
    std::string origin;                                 ///< file that contains the template
    std::string problem;  ///< reason why the templates cannot be used; empty if the template is valid
};

std::optional<ChatTemplateSource> find_chat_template(const std::filesystem::path& model);

}  // namespace kvscope::checkpoint
