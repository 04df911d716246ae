#include "kernels/linear.h"

#include <algorithm>
#include <stdexcept>

#include "kernels/cpu/levels/level_kernels.h"
#include "kernels/cpu/workspace.h"
#include "kernels/threads/team.h"

namespace kvscope::kernels {
namespace {

constexpr size_t x_bytes = size_t{16} << 20;  ///< bytes of x that are packed at a time
/// Rows per task: enough to pay for the transposition, but few enough that their x stays in the second-level cache.
constexpr int64_t fewest_per_task = 192, most_per_task = 512;
constexpr size_t x_of_task = size_t{600} << 10;
/// Two panels of outputs begin and end at cache lines, so that threads share no line.
constexpr int64_t panels_per_task = 2;
/// With fewer multiplications, waking other threads takes longer than the work.
constexpr int64_t worth_threads = 1 << 16;

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// A range of rows, small enough to be packed together, and its division among threads.
struct Share {
    const Linear& problem;
    const LinearKernel& kernel;
    int64_t first = 0, n_rows = 0;
    WeightFormat format = problem.format.value_or(weight_format_of(problem.dtype));
    bool is_stored = format != weight_format_of(problem.dtype);
    bool by_panel = n_rows > (is_stored ? kernel.stored_up_to : kernel.direct_up_to);
    int threads = n_rows * problem.in * problem.out > worth_threads ? kernels::threads() : 1;
    LinearTiles tiles = in_tiles();
    int64_t n_panels = (problem.out + linear_panel_outputs - 1) / linear_panel_outputs;
    int64_t n_parts = in_parts();  ///< number of parts into which the tiles are divided

    LinearTiles in_tiles() const {
        const int64_t most = by_panel ? kernel.rows_by_panel : kernel.rows_direct;
        return {n_rows, (n_rows + most - 1) / most};
    }
    int64_t in_parts() const {
        const auto fitting = static_cast<int64_t>(x_of_task / kernel.packed_bytes(problem.in));
        const int64_t tasks_of_all = (n_panels + panels_per_task - 1) / panels_per_task;
        const bool enough_tasks = n_rows / most_per_task * tasks_of_all >= 8 * threads;
        const int64_t most = enough_tasks ? std::clamp(fitting, fewest_per_task, most_per_task) : fewest_per_task;
        return (n_rows + most - 1) / most;
    }
    /// If there are few rows, each thread gets two ranges in turn, so that other threads can help a delayed thread.
    int64_t panels_together() const {
        return by_panel ? panels_per_task : std::max(int64_t{1}, (n_panels + 2 * threads - 1) / (2 * threads));
    }
    int64_t first_tile(int64_t part) const { return tiles.n_tiles * part / n_parts; }
    int64_t tiles_of_part() const { return (tiles.n_tiles + n_parts - 1) / n_parts; }
};

struct Scratch {
    size_t packed, result, panel, decoded;
    explicit Scratch(const Share& share)
        : packed(aligned(static_cast<size_t>(share.n_rows) * share.kernel.packed_bytes(share.problem.in))),
          result(aligned(static_cast<size_t>(share.tiles_of_part() * linear_tile_floats) * sizeof(float))),
          panel(share.by_panel ? aligned(share.kernel.panel_bytes(share.problem.in)) : 0),
          decoded(share.is_stored ? aligned(share.kernel.decoded_bytes(share.problem.in)) : 0) {}
    size_t of_thread() const { return (result + panel + decoded + 4095) / 4096 * 4096; }
};

void pack_tile(const Share& share, int64_t tile, char* packed) {
    const Linear& problem = share.problem;
    const int64_t row = share.tiles.begin(tile), stride = problem.x_stride ? problem.x_stride : problem.in;
    const auto* x = static_cast<const char*>(problem.x) +
                    static_cast<size_t>((share.first + row) * stride) * size_of(problem.dtype);
    share.kernel.pack(x, stride, share.tiles.rows(tile), problem.in,
                      packed + static_cast<size_t>(row) * share.kernel.packed_bytes(problem.in));
}

void multiply_panel(const Share& share, int64_t panel, int64_t part, const char* packed, char* own,
                    const Scratch& scratch) {
    const Linear& problem = share.problem;
    const int64_t y_stride = problem.y_stride ? problem.y_stride : problem.out, output = panel * linear_panel_outputs;
    const size_t weight_bytes = row_bytes(share.format, problem.in);
    LinearTask task;
    task.x = packed;
    task.tiles = share.tiles;
    task.first_tile = share.first_tile(part);
    task.end_tile = share.first_tile(part + 1);
    task.weight = static_cast<const char*>(problem.weight) + static_cast<size_t>(output) * weight_bytes;
    task.row_bytes = weight_bytes;
    task.format = share.format;
    task.in = problem.in;
    task.n_outputs = std::min(linear_panel_outputs, problem.out - output);
    task.bias = problem.bias ? problem.bias + output : nullptr;
    task.y =
        static_cast<char*>(problem.y) + static_cast<size_t>(share.first * y_stride + output) * size_of(problem.y_dtype);
    task.y_dtype = problem.y_dtype;
    task.y_stride = y_stride;
    task.result = reinterpret_cast<float*>(own);
    task.panel = share.by_panel ? own + scratch.result : nullptr;
    task.decoded = share.is_stored ? own + scratch.result + scratch.panel : nullptr;
    share.kernel.multiply(task);
}

void multiply(const Share& share) {
    const Scratch scratch(share);
    thread_local Workspace workspace;
    auto* packed = static_cast<char*>(
        workspace.reserve(scratch.packed + scratch.of_thread() * static_cast<size_t>(share.threads)));
    constexpr int64_t few_tiles = 2, tiles_together = 8;
    const bool shares_packing = share.tiles.n_tiles > few_tiles;
    for (int64_t tile = 0; !shares_packing && tile < share.tiles.n_tiles; ++tile) pack_tile(share, tile, packed);
    const int64_t together = share.panels_together();
    if (shares_packing)
        over_parts(share.threads, share.tiles.n_tiles, tiles_together, [&](int64_t begin, int64_t end, int) {
            for (int64_t tile = begin; tile < end; ++tile) pack_tile(share, tile, packed);
        });
    over_parts(share.threads, share.n_panels * share.n_parts, together, [&](int64_t begin, int64_t end, int member) {
        char* own = packed + scratch.packed + scratch.of_thread() * static_cast<size_t>(member);
        for (int64_t i = begin; i < end; ++i)
            multiply_panel(share, i % share.n_panels, i / share.n_panels, packed, own, scratch);
    });
}

}  // namespace

void linear(const Linear& problem) {
    if (problem.dtype == DType::f16 || problem.y_dtype == DType::f16)
        throw std::invalid_argument("linear: expected f32 or bf16, found f16");
    if (problem.n_rows < 0 || problem.in <= 0 || problem.out <= 0)
        throw std::invalid_argument("linear: sizes must be positive");
    if (problem.n_rows == 0) return;
    if (!problem.x || !problem.weight || !problem.y) throw std::invalid_argument("linear: an array is null");
    if (problem.format && problem.in % block_size_of_format(*problem.format).n != 0)
        throw std::invalid_argument("linear: the row length is not a multiple of the format's block size");
    const LevelKernels& level = level_kernels();
    const LinearKernel& kernel = problem.dtype == DType::bf16 ? level.linear_bf16 : level.linear_f32;
    const auto fitting = static_cast<int64_t>(x_bytes / kernel.packed_bytes(problem.in));
    const int64_t together = std::max(fewest_per_task, fitting);
    for (int64_t row = 0; row < problem.n_rows; row += together)
        multiply({problem, kernel, row, std::min(together, problem.n_rows - row)});
}

}  // namespace kvscope::kernels
