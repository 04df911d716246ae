#pragma once

#include <memory>

#include "engine/tokenizer/aligned_text.h"
#include "engine/tokenizer/tokenizer_json_node.h"

namespace kvscope::checkpoint {

/// The first stage of an encoder's tokenizer.json, which keeps track of where each character is from. Kinds: Sequence,
/// BertNormalizer, Precompiled, Replace, Strip.
class AlignedNormalizer {
 public:
    virtual ~AlignedNormalizer() = default;
    virtual AlignedText apply(const AlignedText& text) const = 0;
};

/// @throws std::runtime_error for other kinds, by name, and for missing or wrong fields
std::unique_ptr<AlignedNormalizer> make_aligned_normalizer(const JsonNode& node);

}  // namespace kvscope::checkpoint
