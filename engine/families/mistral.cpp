#include "engine/families/api/family.h"

namespace kvscope::checkpoint {

Family mistral_family() {
    return {
        .name = "mistral",
        .title = "Mistral",
        // The second class is for models with layer_types.
        .hf_classes = {{"mistral", "MistralForCausalLM"}, {"ministral", "MinistralForCausalLM"}},
        .gguf_architecture = "llama",
        .part_of_name = "mistral",
        .gguf_interleaves_qk = true,
        .defaults = {.context_length = 4096 * 32, .n_kv_heads = 8, .bos_id = 1, .eos_id = 2},
        .windows = {.exist = true},
    };
}

}  // namespace kvscope::checkpoint
