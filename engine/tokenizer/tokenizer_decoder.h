#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer_json_node.h"
#include "engine/tokenizer/tokenizer_limits.h"

namespace kvscope::checkpoint {

/// Decoder of a tokenizer.json, which converts tokens to text.
class Decoder {
 public:
    virtual ~Decoder() = default;

    /// Rewrites consecutive tokens. The results together form the text.
    [[nodiscard]] virtual std::vector<std::string> apply(std::vector<std::string> tokens,
                                                         TokenizerLimits& limits) const = 0;

    [[nodiscard]] virtual std::string piece(std::string_view token, TokenizerLimits& limits) const = 0;
};

/// Supports Sequence, ByteLevel, ByteFallback, Metaspace, Replace, Strip, Fuse. @throws std::runtime_error for others
[[nodiscard]] std::unique_ptr<Decoder> make_decoder(const JsonNode& node);

}  // namespace kvscope::checkpoint
