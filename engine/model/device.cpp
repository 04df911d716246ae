#include "engine/model/device.h"

#include <algorithm>
#include <string>

#include "engine/common/error.h"
#include "engine/options/run_options.h"
#include "kernels/cpu_features.h"
#include "kernels/cuda_library.h"

namespace kvscope::engine {

kernels::Device device_from_name(std::string_view name) {
    if (name == "cpu") return kernels::Device::cpu;
    if (name == "cuda") return kernels::Device::cuda;
    throw UsageError("unknown device '" + std::string(name) + "': expected cpu or cuda");
}

void require_runnable(kernels::Device device) {
    if (device == kernels::Device::cpu) return;
    if (!kernels::cuda::available()) throw RunError("--device cuda: " + kernels::cuda::unavailable_reason());
    throw RunError(
        "--device cuda: of this version's kernels only the window attention has a CUDA twin; models run with --device "
        "cpu");
}

kernels::DType dtype_from_name(std::string_view name) {
    if (name == "f32") return kernels::DType::f32;
    if (name == "bf16") return kernels::DType::bf16;
    if (name == "auto")
        return kernels::simd_level() >= kernels::SimdLevel::avx512_bf16 ? kernels::DType::bf16 : kernels::DType::f32;
    RunOptions asked;
    asked.dtype = name;
    throw UsageError(problem_of(asked));
}

}  // namespace kvscope::engine
