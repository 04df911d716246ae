#include "engine/projection_spectra.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "engine/common/engine_error.h"
#include "engine/device/tensor_functions.h"
#include "engine/model/model.h"
#include "kernels/threads/team.h"
#include "trace/spectra_cache.h"

namespace kvscope::engine {
namespace {

using TorchThreads = kernels::ThreadsOf<&at::get_num_threads, &at::set_num_threads>;

struct Part {
    const char* projection;
    int n_heads;
    std::vector<float>* whole;
    std::vector<float>* heads;
};

std::array<Part, 3> spectra_as_bytes(const checkpoint::ModelConfig& config, trace::ModelRecord& record) {
    return {{{"q_proj", config.n_heads, &record.spectrum_q, &record.head_spectrum_q},
             {"k_proj", config.n_kv_heads, &record.spectrum_k, &record.head_spectrum_k},
             {"v_proj", config.n_kv_heads, &record.spectrum_v, &record.head_spectrum_v}}};
}

/// Appends ascending eigenvalues (…, n) in descending order, padded with zeros to `width`.
void append_descending(const at::Tensor& eigenvalues, int64_t width, std::vector<float>& target) {
    const at::Tensor rows = at::flip(at::clamp_min(eigenvalues, 0.0), {-1}).to(at::kFloat).contiguous();
    const int64_t n = rows.size(-1);
    const float* data = rows.const_data_ptr<float>();
    for (int64_t row = 0; row < rows.numel() / n; ++row) {
        target.insert(target.end(), data + row * n, data + (row + 1) * n);
        target.insert(target.end(), static_cast<size_t>(width - n), 0.0f);
    }
}

}  // namespace

void add_projection_spectra(const checkpoint::Checkpoint& checkpoint, const std::string& fingerprint,
                            trace::ModelRecord& record, Progress& progress) {
    const auto& config = checkpoint.config();
    const auto model = model_attributes(config, fingerprint);
    if (trace::read_cached_spectra(model, record)) return;
    for (const auto& part : spectra_as_bytes(config, record)) {
        part.whole->clear();
        part.heads->clear();
    }
    progress.begin("spectra", config.n_layers, "layers");
    const TorchThreads several(kernels::threads());
    for (int layer = 0; layer < config.n_layers; ++layer) {
        progress.throw_if_stopped();
        for (const auto& part : spectra_as_bytes(config, record)) {
            const int64_t rows = int64_t{part.n_heads} * config.head_dim;
            at::Tensor weight = at::empty({rows, config.hidden_size}, at::kFloat);
            checkpoint.read_f32("model.layers." + std::to_string(layer) + ".self_attn." + part.projection + ".weight",
                                std::span<float>(weight.data_ptr<float>(), static_cast<size_t>(weight.numel())));
            weight = weight.to(at::kDouble);
            // W^T W and W W^T have the same nonzero eigenvalues, so the smaller matrix is used.
            const at::Tensor gram = rows < config.hidden_size ? at::mm(weight, weight.t()) : at::mm(weight.t(), weight);
            append_descending(at::linalg_eigvalsh(gram), config.hidden_size, *part.whole);
            const at::Tensor heads = weight.view({part.n_heads, config.head_dim, config.hidden_size});
            const at::Tensor head_gram = config.head_dim <= config.hidden_size ? at::bmm(heads, heads.transpose(1, 2))
                                                                               : at::bmm(heads.transpose(1, 2), heads);
            append_descending(at::linalg_eigvalsh(head_gram), config.head_dim, *part.heads);
        }
        progress.advance(layer + 1);
    }
    trace::save_spectra_in_cache(model, record);
}

double estimate_spectra_seconds(const checkpoint::ModelConfig& config, const std::string& fingerprint) {
    if (trace::has_cached_spectra(model_attributes(config, fingerprint))) return 0;
    constexpr double operations_per_second = 2.5e9;
    const double hidden = config.hidden_size;
    const double d = config.head_dim;
    double operations = 0;
    for (const double heads : {config.n_heads, config.n_kv_heads, config.n_kv_heads}) {
        const double smaller = std::min(heads * d, hidden);
        operations +=
            2 * smaller * heads * d * hidden + 4 * smaller * smaller * smaller / 3;  // W W^T, then the eigenvalues
        operations += heads * (2 * d * d * hidden + 4 * d * d * d / 3);
    }
    return config.n_layers * operations / operations_per_second;
}

}  // namespace kvscope::engine
