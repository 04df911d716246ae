#include "engine/families/api/family.h"

namespace kvscope::checkpoint {

Family qwen2_family() {
    return {
        .name = "qwen2",
        .title = "Qwen2 and 2.5",
        .hf_classes = {{"qwen2", "Qwen2ForCausalLM"}},
        .gguf_architecture = "qwen2",
        .defaults = {.context_length = 32768, .n_kv_heads = 32},
        .qkv_bias = {.always = true},
        .windows = {.exist = true,
                    .enabled_by = "use_sliding_window",
                    .first_layer = "max_window_layers",
                    .default_first_layer = 28},
    };
}

}  // namespace kvscope::checkpoint
