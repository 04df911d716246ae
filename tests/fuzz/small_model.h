#pragma once

namespace kvscope::fuzz {

// A model's other files, where one of them comes from outside.

inline constexpr const char* small_config =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32,
    "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
    "vocab_size": 8, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
    "tie_word_embeddings": true, "eos_token_id": 2, "bos_token_id": 1})";

inline constexpr const char* small_tokenizer =
    R"({"model": {"type": "BPE", "vocab": {"a": 0, "<s>": 1, "</s>": 2, "b": 3},
    "merges": []}})";

}  // namespace kvscope::fuzz
