#pragma once

#include <string>

#include "engine/tokenizer/tokenizer_json_node.h"

namespace kvscope::checkpoint {

/// What a pre-tokenizer "Metaspace" writes for spaces, and where it puts one in front and cuts.
struct MetaspaceOptions {
    enum class Prepend { always, first, never };

    std::string replacement;
    char32_t character = 0;  ///< the replacement
    Prepend prepend = Prepend::always;
    bool split = true;
};

/// @throws std::runtime_error for wrong fields
MetaspaceOptions read_metaspace(const JsonNode& node);

}  // namespace kvscope::checkpoint
