#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer_json_node.h"

namespace kvscope::checkpoint {

/// The last stage of a tokenizer.json: turns tokens back into text. Kinds: Sequence, ByteLevel, ByteFallback,
/// Metaspace, Replace, Strip, Fuse.
class Decoder {
 public:
    virtual ~Decoder() = default;

    /// Rewrites the spellings of consecutive tokens; their concatenation is the text.
    virtual std::vector<std::string> apply(std::vector<std::string> tokens) const = 0;

    /// The bytes that one spelling stands for in the middle of a text.
    virtual std::string piece(std::string_view token) const = 0;
};

/// @throws std::runtime_error for other kinds, by name, and for missing or wrong fields
std::unique_ptr<Decoder> make_decoder(const JsonNode& node);

}  // namespace kvscope::checkpoint
