#include "engine/families/api/family.h"

namespace kvscope::checkpoint {

Family qwen3_family() {
    return {
        .name = "qwen3",
        .title = "Qwen3",
        .hf_classes = {{"qwen3", "Qwen3ForCausalLM"}},
        .gguf_architecture = "qwen3",
        .defaults = {.context_length = 32768, .n_kv_heads = 32, .head_dim = 128},
        .qkv_bias = {.field = "attention_bias"},
        .output_bias = {.field = "attention_bias"},
        .qk_norm = true,
        .windows = {.exist = true,
                    .enabled_by = "use_sliding_window",
                    .first_layer = "max_window_layers",
                    .default_first_layer = 28},
    };
}

}  // namespace kvscope::checkpoint
