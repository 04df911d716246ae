#include "engine/families/api/family.h"

namespace kvscope::checkpoint {

std::vector<NameInFiles> Keys::all() const {
    return {n_layers,   n_heads,        n_kv_heads,   head_dim,   hidden_size,    intermediate_size,
            vocab_size, context_length, rms_norm_eps, rope_theta, sliding_window, window_layers};
}

TensorNames usual_tensor_names(TensorNames own) {
    own.merge(TensorNames{
        {"model.embed_tokens", {"model.embed_tokens", "token_embd"}},
        {"model.norm", {"model.norm", "output_norm"}},
        {"lm_head", {"lm_head", "output"}},
        {"model.layers", {"model.layers", "blk"}},  // prefix of the names below
        {"input_layernorm", {"input_layernorm", "attn_norm"}},
        {"post_attention_layernorm", {"post_attention_layernorm", "ffn_norm"}},
        {"self_attn.q_proj", {"self_attn.q_proj", "attn_q"}},
        {"self_attn.k_proj", {"self_attn.k_proj", "attn_k"}},
        {"self_attn.v_proj", {"self_attn.v_proj", "attn_v"}},
        {"self_attn.o_proj", {"self_attn.o_proj", "attn_output"}},
        {"self_attn.q_norm", {"self_attn.q_norm", "attn_q_norm"}},
        {"self_attn.k_norm", {"self_attn.k_norm", "attn_k_norm"}},
        {"mlp.gate_proj", {"mlp.gate_proj", "ffn_gate"}},
        {"mlp.up_proj", {"mlp.up_proj", "ffn_up"}},
        {"mlp.down_proj", {"mlp.down_proj", "ffn_down"}},
    });
    return own;
}

std::set<std::string, std::less<>> Family::hf_fields() const {
    std::set<std::string, std::less<>> fields;
    for (const NameInFiles& key : keys.all()) fields.insert(key.hf);
    for (const char* field :
         {qkv_bias.field, output_bias.field, mlp_bias.field, windows.enabled_by, windows.first_layer})
        if (field != nullptr) fields.insert(field);
    return fields;
}

std::set<std::string, std::less<>> Family::gguf_keys() const {
    std::set<std::string, std::less<>> names;
    for (const NameInFiles& key : keys.all()) names.insert(key.gguf);
    return names;
}

}  // namespace kvscope::checkpoint
