#include "kernels/window_attention.h"

#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

#include "kernels/cpu/window_attention.h"
#include "kernels/cuda/abi.h"
#include "kernels/cuda_library.h"

namespace kvscope::kernels {

namespace {

void check(const WindowAttention& problem) {
    const auto require = [](bool condition, const std::string& what) {
        if (!condition) throw std::invalid_argument("window_attention: " + what);
    };
    require(problem.keys_dtype == DType::f32 || problem.keys_dtype == DType::bf16,
            std::string("keys are ") + name_of(problem.keys_dtype) + ", expected f32 or bf16");
    require(problem.n_kv_heads > 0 && problem.n_heads > 0 && problem.n_heads % problem.n_kv_heads == 0,
            std::to_string(problem.n_heads) + " query heads are not a multiple of " +
                std::to_string(problem.n_kv_heads) + " KV heads");
    require(problem.head_dim > 0, "the head size must be above 0");
    require(problem.window > 0 && problem.window <= problem.n_tokens, "a window of " + std::to_string(problem.window) +
                                                                          " queries does not fit into " +
                                                                          std::to_string(problem.n_tokens) + " tokens");
    require(problem.scale >= 0 && problem.sliding_window >= 0, "scale and sliding_window must not be negative");
    require(problem.queries && problem.keys && problem.mean, "queries, keys or mean is null");
    require(problem.n_kv_heads == 1 || problem.key_head_stride >= problem.n_tokens * problem.head_dim,
            "the stride between KV heads is smaller than their keys");
}

template <class Function>
Function* function(const char* name) {
    return reinterpret_cast<Function*>(cuda::find_library_function(name));
}

void on_cuda(const WindowAttention& problem) {
    using namespace cuda;
    const auto bytes_for = function<abi::RunWindowAttentionWorkspace>(abi::window_attention_workspace_symbol);
    const auto run = function<abi::RunWindowAttention>(abi::window_attention_symbol);
    const auto wait = function<abi::Synchronize>(abi::synchronize_symbol);
    const size_t bytes = bytes_for(&problem);
    const DeviceMemory workspace(bytes);
    std::array<char, 512> message{};
    if (!run(&problem, workspace.data(), bytes, nullptr, message.data(), message.size()) ||
        !wait(nullptr, message.data(), message.size()))
        throw Failed(std::string("window_attention on the GPU: ") + message.data());
}

}  // namespace

void window_attention(Device device, const WindowAttention& problem) {
    check(problem);
    WindowAttention complete = problem;
    if (complete.scale == 0) complete.scale = 1.0f / std::sqrt(static_cast<float>(problem.head_dim));
    if (complete.query_head_stride == 0) complete.query_head_stride = int64_t{problem.window} * problem.head_dim;
    if (device == Device::cuda)
        on_cuda(complete);
    else
        cpu::window_attention(complete);
}

}  // namespace kvscope::kernels
