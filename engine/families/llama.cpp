#include "engine/families/api/family.h"

namespace kvscope::checkpoint {

Family llama_family() {
    return {
        .name = "llama",
        .title = "Llama 2 and 3.x",
        .hf_classes = {{"llama", "LlamaForCausalLM"}},
        .gguf_architecture = "llama",
        .gguf_interleaves_qk = true,
        .defaults = {.bos_id = 1, .eos_id = 2},
        .qkv_bias = {.field = "attention_bias"},
        .output_bias = {.field = "attention_bias"},
        .mlp_bias = {.field = "mlp_bias"},
    };
}

}  // namespace kvscope::checkpoint
