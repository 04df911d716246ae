#include "analysis/runs/model_in_words.h"

#include <fmt/format.h>

namespace kvscope::analysis {

std::string model_in_words(const trace::ModelAttributes& model) {
    return fmt::format("{}, {}, {} layers, {} heads, {} KV heads, fingerprint {}", model.name, model.dtype,
                       model.n_layers, model.n_heads, model.n_kv_heads, model.fingerprint);
}

}  // namespace kvscope::analysis
