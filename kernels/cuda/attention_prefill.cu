#include "kernels/cuda/abi.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/prefill_plan.h"

namespace kvscope::kernels::cuda {

namespace {

constexpr const char* kernel_name = "attention_prefill";

template <class T, int D>
__global__ __launch_bounds__(PrefillShape<T, D>::block_threads,
                             PrefillShape<T, D>::blocks_of_processor) void attend_tiles(const PrefillItem* items,
                                                                                        int64_t n_items) {
    using Block = DeviceBlock<PrefillShape<T, D>::block_threads>;
    extern __shared__ uint4 memory[];
    Block block;
    const PrefillItem& item = items[item_of_block(items, n_items, blockIdx.x, gridDim.x)];
    PrefillTile<Block, T, D>(item, blockIdx.x).attend(block, *reinterpret_cast<PrefillShared<T, D>*>(memory));
}

template <class T, int D>
__global__ __launch_bounds__(PrefillShape<T, D>::block_threads,
                             PrefillShape<T, D>::column_blocks_of_processor) void add_columns(const PrefillItem* items,
                                                                                              const ColumnItem* columns,
                                                                                              int64_t n_columns) {
    using Block = DeviceBlock<PrefillShape<T, D>::block_threads>;
    extern __shared__ uint4 memory[];
    Block block;
    const ColumnItem& of = columns[item_of_block(columns, n_columns, blockIdx.x, gridDim.x)];
    ColumnTile<Block, T, D>(items[of.item], of, blockIdx.x).add(block, *reinterpret_cast<ColumnShared<T, D>*>(memory));
}

template <class T, int D>
PrefillPlan plan_of(std::span<const PrefillAttention> problems) {
    PrefillPlan plan;
    for (const PrefillAttention& problem : problems) plan.add<T, D>(problem);
    return plan;
}

template <class T, int D>
bool attend(std::span<const PrefillAttention> problems, const Call& call) {
    PrefillPlan plan = plan_of<T, D>(problems);
    if (plan.items.empty()) return true;
    if (plan.n_blocks > most_blocks || plan.n_column_blocks > most_blocks)
        return call.refuse(kernel_name, "too many queries");
    Staging staging = call.staging();
    Workspace workspace(call.workspace, staging.place());
    const PrefillPlan::Placed placed = plan.place(workspace);
    if (!call.upload(kernel_name, workspace, staging)) return false;
    constexpr int block_threads = PrefillShape<T, D>::block_threads;
    const auto attend_kernel = attend_tiles<T, D>;
    const auto columns_kernel = add_columns<T, D>;
    if (!call.opted_in<PrefillShared<T, D>>(kernel_name, attend_kernel)) return false;
    if (!call.opted_in<ColumnShared<T, D>>(kernel_name, columns_kernel)) return false;
    attend_kernel<<<to_grid_size(plan.n_blocks), block_threads, sizeof(PrefillShared<T, D>), call.queue()>>>(
        placed.items, static_cast<int64_t>(plan.items.size()));
    if (plan.n_column_blocks > 0)
        columns_kernel<<<to_grid_size(plan.n_column_blocks), block_threads, sizeof(ColumnShared<T, D>), call.queue()>>>(
            placed.items, placed.columns, static_cast<int64_t>(plan.columns.size()));
    return call.launched(kernel_name);
}

template <class Body>
auto of_kind(const PrefillAttention& problem, const Body& body) {
    const int d = PrefillPlan::padded(problem.head_dim);
    const auto of_size = [&]<class T>(T) {
        if (d == 64) return body.template operator()<T, 64>();
        if (d == 96) return body.template operator()<T, 96>();
        if (d == 128) return body.template operator()<T, 128>();
        return body.template operator()<T, 256>();
    };
    return problem.dtype == DType::f32 ? of_size(float{}) : of_size(bf16{});
}

std::string reason_against(std::span<const PrefillAttention> problems) {
    for (const PrefillAttention& problem : problems) {
        const std::string reason = PrefillPlan::reason_against(problem);
        if (!reason.empty()) return reason;
        if (problem.dtype != problems.front().dtype || problem.head_dim != problems.front().head_dim)
            return "the problems of a call have different types or head sizes";
    }
    return {};
}

}  // namespace

}  // namespace kvscope::kernels::cuda

KVSCOPE_CUDA_EXPORT size_t kvscope_cuda_attention_prefill_workspace(const kvscope::kernels::PrefillAttention* problems,
                                                                    size_t n_problems) {
    using namespace kvscope::kernels;
    const std::span all(problems, n_problems);
    if (all.empty() || !cuda::reason_against(all).empty()) return 0;
    return cuda::of_kind(all.front(), [&]<class T, int D>() {
        cuda::Workspace workspace;
        cuda::plan_of<T, D>(all).place(workspace);
        return workspace.bytes();
    });
}

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_attention_prefill(const kvscope::kernels::PrefillAttention* problems,
                                                        size_t n_problems, void* workspace, size_t workspace_bytes,
                                                        void* stream, char* error, size_t error_size) {
    using namespace kvscope::kernels;
    const cuda::Call call{workspace, workspace_bytes, stream, error, error_size};
    const std::span all(problems, n_problems);
    return call.guarded(cuda::kernel_name, [&] {
        const std::string reason = cuda::reason_against(all);
        if (!reason.empty()) return call.refuse(cuda::kernel_name, reason.c_str());
        if (all.empty()) return true;
        return cuda::of_kind(all.front(), [&]<class T, int D>() { return cuda::attend<T, D>(all, call); });
    });
}
