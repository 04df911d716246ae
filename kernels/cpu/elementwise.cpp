#include <cmath>
#include <stdexcept>
#include <string>

#include "kernels/cpu/levels/level_kernels.h"
#include "kernels/threads/team.h"

namespace kvscope::kernels {

namespace {

constexpr int64_t least_parallel_elements =
    1 << 15;  ///< with fewer elements, waking other threads takes longer than the work

template <class Problem>
void over_rows(void (*kernel)(const Problem&, int64_t, int64_t), const Problem& problem, int64_t n_rows,
               int64_t row_elements) {
    if (n_rows <= 0) return;
    if (n_rows * row_elements < least_parallel_elements) return kernel(problem, 0, n_rows);
    constexpr int64_t rows_together = 4;
    over_parts(threads(), n_rows, rows_together, [&](int64_t begin, int64_t end, int) { kernel(problem, begin, end); });
}

void require(bool condition, const char* kernel, const std::string& what) {
    if (!condition) throw std::invalid_argument(std::string(kernel) + ": " + what);
}

void require_type(DType dtype, const char* kernel) {
    require(dtype == DType::f32 || dtype == DType::bf16, kernel,
            std::string("type is ") + name_of(dtype) + ", expected f32 or bf16");
}

}  // namespace

void rms_norm(const RmsNorm& problem) {
    require_type(problem.x_dtype, "rms_norm");
    require_type(problem.out_dtype, "rms_norm");
    require(problem.dim > 0 && problem.heads > 0, "rms_norm", "dim and heads must be above 0");
    over_rows(level_kernels().rms_norm, problem, problem.n_rows, problem.heads * problem.dim);
}

void add_rms_norm(const AddRmsNorm& problem) {
    require_type(problem.delta_dtype, "add_rms_norm");
    require_type(problem.out_dtype, "add_rms_norm");
    require(problem.dim > 0, "add_rms_norm", "dim must be above 0");
    over_rows(level_kernels().add_rms_norm, problem, problem.n_rows, problem.dim);
}

void rope_table(std::span<const int64_t> positions, std::span<const double> inverse_frequencies,
                double attention_factor, float* cosines, float* sines) {
    const size_t half = inverse_frequencies.size();
    for (size_t t = 0; t < positions.size(); ++t)
        for (size_t c = 0; c < half; ++c) {
            const double angle = static_cast<double>(positions[t]) * inverse_frequencies[c];
            cosines[t * half + c] = static_cast<float>(std::cos(angle) * attention_factor);
            sines[t * half + c] = static_cast<float>(std::sin(angle) * attention_factor);
        }
}

void rope(const Rope& problem) {
    require_type(problem.dtype, "rope");
    require(problem.head_dim > 0 && problem.head_dim % 2 == 0, "rope", "the head size must be even");
    over_rows(level_kernels().rope, problem, problem.n_tokens, int64_t{problem.n_heads} * problem.head_dim);
}

void swiglu(const SwiGlu& problem) {
    require_type(problem.dtype, "swiglu");
    over_rows(level_kernels().swiglu, problem, problem.n_rows, problem.dim);
}

void log_softmax(const LogSoftmax& problem) {
    over_rows(level_kernels().log_softmax, problem, problem.n_rows, problem.n);
}

void divergence_of_logs(const DivergenceOfLogs& problem) {
    over_rows(level_kernels().divergence_of_logs, problem, problem.n_rows, problem.n);
}

}  // namespace kvscope::kernels
