#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/tokenizer/tokenizer_json_node.h"

namespace kvscope::checkpoint {

/// The first stage of a tokenizer.json: rewrites text before it is cut. Kinds: Sequence, NFC, NFD, NFKC, NFKD,
/// Lowercase, Prepend, Replace, Strip.
class Normalizer {
 public:
    virtual ~Normalizer() = default;
    virtual std::string apply(std::string_view text) const = 0;
};

/// @throws std::runtime_error for other kinds, by name, and for missing or wrong fields
std::unique_ptr<Normalizer> make_normalizer(const JsonNode& node);

}  // namespace kvscope::checkpoint
