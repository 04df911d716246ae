#include <stdexcept>

#include "kernels/cpu/levels/level_kernels.h"
#include "kernels/threads/team.h"
#include "kernels/weight_format.h"

namespace kvscope::kernels {
namespace {

constexpr int64_t worth_threads = 1 << 16;  ///< with fewer weights, waking other threads takes longer than the work
constexpr int64_t rows_together = 32;

}  // namespace

void expand_weights(const ExpandWeights& problem) {
    if (problem.dtype == DType::f16) throw std::invalid_argument("expand_weights: expected f32 or bf16, found f16");
    if (problem.n_rows < 0 || problem.in <= 0 || problem.in % block_size_of_format(problem.format).n != 0)
        throw std::invalid_argument("expand_weights: the row length is not a multiple of the format's block size");
    if (problem.n_rows == 0) return;
    if (!problem.rows || !problem.out) throw std::invalid_argument("expand_weights: an array is null");
    const LevelKernels& level = level_kernels();
    const size_t stored = row_bytes(problem.format, problem.in);
    const bool is_large = problem.n_rows * problem.in > worth_threads;
    over_parts(is_large ? threads() : 1, problem.n_rows, rows_together, [&](int64_t begin, int64_t end, int) {
        for (int64_t row = begin; row < end; ++row) {
            const auto* from = static_cast<const char*>(problem.rows) + static_cast<size_t>(row) * stored;
            const int64_t at = row * problem.in;
            if (problem.dtype == DType::bf16)
                level.decode_bf16(problem.format, from, 0, problem.in, static_cast<bf16*>(problem.out) + at);
            else
                level.decode_f32(problem.format, from, 0, problem.in, static_cast<float*>(problem.out) + at);
        }
    });
}

}  // namespace kvscope::kernels
