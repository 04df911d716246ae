#include "engine/prefill/projection_eigenvectors.h"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/common/engine_error.h"
#include "engine/device/tensor_functions.h"
#include "engine/files/user_cache_file.h"
#include "kernels/threads/parallel_with_scratch.h"

namespace kvscope::engine {
namespace {

struct NothingBeside {};

void solve_head(const at::Tensor& weight, float* modes) {
    const int64_t d = weight.size(0);
    const at::Tensor numbers = weight.to(at::kDouble).contiguous();
    using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const Eigen::Map<const Rows> w(numbers.const_data_ptr<double>(), d, weight.size(1));
    Eigen::MatrixXd gram = Eigen::MatrixXd::Zero(d, d);
    gram.selfadjointView<Eigen::Lower>().rankUpdate(w);
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(gram);
    std::fill_n(modes, d * d, std::numeric_limits<float>::quiet_NaN());
    if (solver.info() != Eigen::Success) return;
    for (int64_t mode = 0; mode < d; ++mode)
        for (int64_t c = 0; c < d; ++c)
            modes[mode * d + c] = static_cast<float>(solver.eigenvectors()(c, d - 1 - mode));
}

int64_t heads_of(const policies::ModelShape& shape) { return int64_t{shape.n_heads} + 2 * int64_t{shape.n_kv_heads}; }

}  // namespace

std::vector<float> layer_projection_eigenvectors(const Transformer& model, int layer) {
    const int64_t d = model.shape().head_dim, n_heads = heads_of(model.shape());
    const at::Tensor weight = model.on_processor().weights().layers[static_cast<size_t>(layer)].qkv.numbers();
    std::vector<float> modes(static_cast<size_t>(n_heads * d * d));
    kernels::parallel_with_scratch<NothingBeside>(n_heads, [&](int64_t head, NothingBeside&) {
        solve_head(weight.narrow(0, head * d, d), modes.data() + head * d * d);
    });
    return modes;
}

std::vector<float> projection_eigenvectors(const Transformer& model, const std::string& fingerprint,
                                           Progress& progress) {
    const auto shape = model.shape();
    // The modes depend on the type to which the weights are rounded.
    const char* type = kernels::name_of(model.dtype());
    const checkpoint::UserCacheFile entry(
        "modes", fmt::format("{}-{}.f32", fingerprint, type),
        fmt::format("kvscope modes 1\n{} {}\n{} layers, {} heads of {}\n", fingerprint, type, shape.n_layers,
                    heads_of(shape), shape.head_dim));
    const auto each = static_cast<size_t>(heads_of(shape)) * static_cast<size_t>(shape.head_dim * shape.head_dim);
    std::vector<float> modes(static_cast<size_t>(shape.n_layers) * each);
    if (const auto kept = entry.find(modes.size() * sizeof(float))) {
        std::memcpy(modes.data(), kept->data(), kept->size());
        return modes;
    }
    progress.begin("modes", shape.n_layers, "layers");
    for (int layer = 0; layer < shape.n_layers; ++layer) {
        progress.throw_if_stopped();
        const std::vector<float> solved = layer_projection_eigenvectors(model, layer);
        std::copy(solved.begin(), solved.end(), modes.begin() + static_cast<std::ptrdiff_t>(each) * layer);
        progress.advance(layer + 1);
    }
    entry.store({reinterpret_cast<const char*>(modes.data()), modes.size() * sizeof(float)});
    return modes;
}

}  // namespace kvscope::engine
