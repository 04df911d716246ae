#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kvscope::checkpoint {

/// Name in Hugging Face directories and in GGUF files.
struct NameInFiles {
    const char* hf;
    const char* gguf;
};

/// Fields of config.json, and keys of GGUF metadata after "ARCHITECTURE.".
struct Keys {
    NameInFiles n_layers = {"num_hidden_layers", "block_count"};
    NameInFiles n_heads = {"num_attention_heads", "attention.head_count"};
    NameInFiles n_kv_heads = {"num_key_value_heads", "attention.head_count_kv"};
    NameInFiles head_dim = {"head_dim", "attention.key_length"};
    NameInFiles hidden_size = {"hidden_size", "embedding_length"};
    NameInFiles intermediate_size = {"intermediate_size", "feed_forward_length"};
    NameInFiles vocab_size = {"vocab_size", "vocab_size"};
    NameInFiles context_length = {"max_position_embeddings", "context_length"};
    NameInFiles rms_norm_eps = {"rms_norm_eps", "attention.layer_norm_rms_epsilon"};
    NameInFiles rope_theta = {"rope_theta", "rope.freq_base"};
    NameInFiles sliding_window = {"sliding_window", "attention.sliding_window"};
    NameInFiles window_layers = {"layer_types", "attention.sliding_window_pattern"};

    [[nodiscard]] std::vector<NameInFiles> all() const;
};

/// Maps the engine's name of a tensor to its names in files. All names omit the layer's number and ".weight" or
/// ".bias".
using TensorNames = std::map<std::string, NameInFiles, std::less<>>;

/// Returns the tensor names that most families use. The names in `own` replace them.
[[nodiscard]] TensorNames usual_tensor_names(TensorNames own = {});

/// Whether layers have a part: always, or if a field of config.json is true. In a GGUF file, a bias exists if its
/// tensor does.
struct Presence {
    bool always = false;
    const char* field = nullptr;
};

/// Windows of the layers according to config.json. GGUF metadata have a window only if layers use it.
struct Windows {
    /// If false, a configuration with a window is refused, because transformers 5 and vLLM treat it differently.
    bool exist = false;
    /// Field that must be true. nullptr: the layers have the window if config.json contains its size.
    const char* enabled_by = nullptr;
    /// Field with the first layer that has the window, for configurations without `Keys::window_layers`.
    const char* first_layer = nullptr;
    int64_t default_first_layer = 0;
    int64_t default_size = 4096;
};

/// transformers' values for missing fields of config.json.
struct Defaults {
    int64_t context_length = 2048;
    int64_t n_kv_heads = 0;  ///< 0 means the number of heads
    int64_t head_dim = 0;    ///< 0 means hidden size / number of heads
    int32_t bos_id = -1;
    int32_t eos_id = -1;
};

struct HfClass {
    std::string model_type, architecture;
};

/// Declaration of a model family: the names in its files, and the parts of its layers.
struct Family {
    std::string name;   ///< in traces: "qwen2"
    std::string title;  ///< in lists of supported models: "Qwen2 and 2.5"
    std::vector<HfClass> hf_classes;
    std::string gguf_architecture;
    /// Part of model names, in lower case, that distinguishes the family from others with the same class or
    /// architecture.
    std::string part_of_name{};
    /// Whether llama.cpp's converter interleaves the two halves of each head in the rows of Q and K.
    bool gguf_interleaves_qk = false;
    Defaults defaults{};
    Presence qkv_bias{}, output_bias{}, mlp_bias{};
    bool qk_norm = false;  ///< whether RMS norm is applied to each head before RoPE
    Windows windows{};
    Keys keys{};
    TensorNames tensors = usual_tensor_names();

    /// Returns the fields of config.json in `keys`, `windows` and the biases.
    [[nodiscard]] std::set<std::string, std::less<>> hf_fields() const;
    [[nodiscard]] std::set<std::string, std::less<>> gguf_keys() const;
};

}  // namespace kvscope::checkpoint
