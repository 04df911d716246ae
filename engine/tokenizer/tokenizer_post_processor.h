#pragma once

#include <cstdint>
#include <vector>

#include "engine/tokenizer/tokenizer_json_node.h"

namespace kvscope::checkpoint {

/// What a post-processor of a tokenizer.json puts before and after a single text.
struct Surrounding {
    std::vector<int32_t> before, after;
};

/// Kinds: Sequence, TemplateProcessing, ByteLevel.
/// @throws std::runtime_error for other kinds, by name, and for missing or wrong fields
void read_post_processor(const JsonNode& node, Surrounding& out);

/// @throws std::runtime_error for an integer that no vocabulary has
int32_t token_id(const JsonNode& node);

}  // namespace kvscope::checkpoint
