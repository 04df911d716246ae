#include <algorithm>
#include <stdexcept>

#include "kernels/cpu/level_kernels.h"
#include "kernels/weight_format.h"

namespace kvscope::kernels {
namespace {

// Below this many weights waking the other threads takes longer than the work.
constexpr int64_t worth_threads = 1 << 16;

}  // namespace

void expand_weights(const ExpandWeights& problem) {
    if (problem.dtype == DType::f16) throw std::invalid_argument("expand_weights: expected f32 or bf16, found f16");
    if (problem.n_rows < 0 || problem.in <= 0 || problem.in % block_of(problem.format).n != 0)
        throw std::invalid_argument("expand_weights: a row is not made of its format's whole blocks");
    if (problem.n_rows == 0) return;
    if (!problem.rows || !problem.out) throw std::invalid_argument("expand_weights: an array is missing");
    const LevelKernels& level = level_kernels();
    const size_t stored = row_bytes(problem.format, problem.in);
    const bool is_large = problem.n_rows * problem.in > worth_threads;
#pragma omp parallel for schedule(static) if (is_large)
    for (int64_t row = 0; row < problem.n_rows; ++row) {
        const auto* from = static_cast<const char*>(problem.rows) + static_cast<size_t>(row) * stored;
        if (problem.dtype == DType::bf16)
            level.decode_bf16(problem.format, from, 0, problem.in, static_cast<bf16*>(problem.out) + row * problem.in);
        else
            level.decode_f32(problem.format, from, 0, problem.in, static_cast<float*>(problem.out) + row * problem.in);
    }
}

}  // namespace kvscope::kernels
