#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace kvscope::checkpoint {

/// A chat template as a model brings it, not yet read.
struct ChatTemplateSource {
    std::string jinja;
    std::map<std::string, std::string> special_tokens;  ///< bos_token, eos_token, … : variables of the template
    std::string origin;                                 ///< the file it stands in
    std::string problem;  ///< why none of the model's templates can be used; empty: jinja is the one
};

/// @throws CheckpointError if a file is damaged
std::optional<ChatTemplateSource> find_chat_template(const std::filesystem::path& model);

}  // namespace kvscope::checkpoint
