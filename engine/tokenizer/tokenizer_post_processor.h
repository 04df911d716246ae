#pragma once

#include <cstdint>
#include <vector>

#include "engine/tokenizer/tokenizer_json_node.h"

namespace kvscope::checkpoint {

struct Surrounding {
    std::vector<int32_t> before, after;
};

/// Supports Sequence, TemplateProcessing and ByteLevel. @throws std::runtime_error for other kinds
void read_post_processor(const JsonNode& node, Surrounding& out);

[[nodiscard]] int32_t read_token_id(const JsonNode& node);

}  // namespace kvscope::checkpoint
