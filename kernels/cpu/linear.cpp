#include "kernels/linear.h"

#include <omp.h>

#include <algorithm>
#include <stdexcept>

#include "kernels/cpu/level_kernels.h"
#include "kernels/cpu/workspace.h"

namespace kvscope::kernels {
namespace {

// Up to here the weight is read where it lies: a copy in reading order costs more than it brings.
constexpr int64_t rows_direct = 8, rows_direct_stored = 48;
// Rows of x are packed this many bytes at a time.
constexpr size_t x_bytes = size_t{16} << 20;
// Rows that share a copy of the weights: enough to be worth it, few enough that they stay in the second-level cache
// from one panel of outputs to the next.
constexpr int64_t rows_per_task = 192;
// Below this many multiplications waking the other threads takes longer than the work.
constexpr int64_t worth_threads = 1 << 16;

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Some rows of the problem, few enough that their packed form is small.
void multiply_rows(const Linear& problem, const LinearKernel& kernel, int64_t first, int64_t n_rows) {
    const int64_t x_stride = problem.x_stride ? problem.x_stride : problem.in;
    const int64_t y_stride = problem.y_stride ? problem.y_stride : problem.out;
    const size_t element = size_of(problem.dtype);
    const WeightFormat format = problem.format.value_or(format_of(problem.dtype));
    const bool is_stored = format != format_of(problem.dtype);
    const size_t weight_bytes = row_bytes(format, problem.in);
    const auto* x = static_cast<const char*>(problem.x) + static_cast<size_t>(first * x_stride) * element;
    const auto* weight = static_cast<const char*>(problem.weight);
    auto* y = static_cast<char*>(problem.y) + static_cast<size_t>(first * y_stride) * size_of(problem.y_dtype);

    const int64_t n_panels = (problem.out + kLinearPanel - 1) / kLinearPanel;
    const bool packs = n_rows > (is_stored ? rows_direct_stored : rows_direct);
    const int threads = n_rows * problem.in * problem.out > worth_threads ? omp_get_max_threads() : 1;
    const int64_t n_parts = (n_rows + rows_per_task - 1) / rows_per_task;
    const int64_t rows_of_part = (n_rows + n_parts - 1) / n_parts;

    const size_t row_bytes = kernel.packed_bytes(problem.in);
    const size_t packed_bytes = aligned(static_cast<size_t>(n_rows) * row_bytes);
    const size_t result_bytes = aligned(static_cast<size_t>(rows_of_part * kLinearPanel) * sizeof(float));
    const size_t panel_bytes = packs ? aligned(kernel.panel_bytes(problem.in)) : 0;
    const size_t decoded_bytes = is_stored ? aligned(kernel.decoded_bytes(problem.in)) : 0;
    const size_t thread_bytes = (result_bytes + panel_bytes + decoded_bytes + 4095) / 4096 * 4096;
    thread_local Workspace workspace;
    auto* packed = static_cast<char*>(workspace.reserve(packed_bytes + thread_bytes * static_cast<size_t>(threads)));

    // Few rows are bound by memory, which streams what lies one after the other.
    const int64_t together = packs ? 1 : std::max(int64_t{1}, n_panels / (threads * 4));
    constexpr int64_t rows_at_once = 16;
    const bool shares_packing = n_rows > rows_at_once;
    if (!shares_packing) kernel.pack_rows(x, x_stride, n_rows, problem.in, packed);
#pragma omp parallel num_threads(threads)
    {
        if (shares_packing) {
#pragma omp for schedule(static)
            for (int64_t row = 0; row < n_rows; row += rows_at_once)
                kernel.pack_rows(x + static_cast<size_t>(row * x_stride) * element, x_stride,
                                 std::min(rows_at_once, n_rows - row), problem.in,
                                 packed + static_cast<size_t>(row) * row_bytes);
        }
        char* own = packed + packed_bytes + thread_bytes * static_cast<size_t>(omp_get_thread_num());
#pragma omp for schedule(dynamic, together)
        for (int64_t i = 0; i < n_panels * n_parts; ++i) {
            const int64_t output = i % n_panels * kLinearPanel;
            const int64_t row = i / n_panels * rows_of_part;
            if (row >= n_rows) continue;
            LinearTask task;
            task.x = packed + static_cast<size_t>(row) * row_bytes;
            task.n_rows = std::min(rows_of_part, n_rows - row);
            task.weight = weight + static_cast<size_t>(output) * weight_bytes;
            task.row_bytes = weight_bytes;
            task.format = format;
            task.decoded = is_stored ? own + result_bytes + panel_bytes : nullptr;
            task.in = problem.in;
            task.n_outputs = std::min(kLinearPanel, problem.out - output);
            task.bias = problem.bias ? problem.bias + output : nullptr;
            task.y = y + static_cast<size_t>(row * y_stride + output) * size_of(problem.y_dtype);
            task.y_dtype = problem.y_dtype;
            task.y_stride = y_stride;
            task.result = reinterpret_cast<float*>(own);
            task.packed_weight = packs ? own + result_bytes : nullptr;
            kernel.multiply(task);
        }
    }
}

}  // namespace

void linear(const Linear& problem) {
    if (problem.dtype == DType::f16 || problem.y_dtype == DType::f16)
        throw std::invalid_argument("linear: expected f32 or bf16, found f16");
    if (problem.n_rows < 0 || problem.in <= 0 || problem.out <= 0)
        throw std::invalid_argument("linear: sizes must be positive");
    if (problem.n_rows == 0) return;
    if (!problem.x || !problem.weight || !problem.y) throw std::invalid_argument("linear: an array is missing");
    if (problem.format && problem.in % block_of(*problem.format).n != 0)
        throw std::invalid_argument("linear: a row of the weight is not made of its format's whole blocks");
    const LevelKernels& level = level_kernels();
    const LinearKernel& kernel = problem.dtype == DType::bf16 ? level.linear_bf16 : level.linear_f32;
    const auto fitting = static_cast<int64_t>(x_bytes / kernel.packed_bytes(problem.in));
    const int64_t together = std::max(rows_per_task, fitting);
    for (int64_t row = 0; row < problem.n_rows; row += together)
        multiply_rows(problem, kernel, row, std::min(together, problem.n_rows - row));
}

}  // namespace kvscope::kernels
