#pragma once

#include <string>

#include "engine/tokenizer/tokenizer_json_node.h"

namespace kvscope::checkpoint {

/// Options of a "Metaspace" pre-tokenizer: the replacement for spaces, and where it is prepended and where text is cut.
struct MetaspaceOptions {
    enum class Prepend { always, first, never };

    std::string replacement;
    char32_t character = 0;  ///< replaces spaces
    Prepend prepend = Prepend::always;
    bool split = true;
};

/// @throws std::runtime_error if a field is invalid
MetaspaceOptions read_metaspace(const JsonNode& node);

}  // namespace kvscope::checkpoint
