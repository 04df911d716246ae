#include "engine/device/cuda_backend.h"

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

#include "engine/device/tensor_functions.h"
#include "engine/device/torch_backend.h"
#include "kernels/cuda/abi.h"
#include "kernels/cuda_library.h"

namespace kvscope::engine {
namespace {

namespace abi = kernels::cuda::abi;
namespace fs = std::filesystem;
using kernels::cuda::Failed;
using kernels::cuda::Unavailable;

// For products with more rows, libtorch is faster.
constexpr int64_t rows_of_own_product = 383;
constexpr int64_t rows_of_block = 1024;  // enough for a tile of the product on every processor of a large card
constexpr int64_t most_head_dim = 256;

constexpr const char* how_to_install =
    "Install PyTorch 2.11 for CUDA (python3 -m pip install torch==2.11.0) and set KVSCOPE_TORCH_CUDA_DIR to the folder "
    "torch/lib of that package";

/// Returns the PyPI package that contains the library that libtorch_cuda.so could not find.
std::string package_of(const std::string& message) {
    constexpr std::pair<const char*, const char*> packages[] = {
        {"libcublas", "nvidia-cublas"},       {"libcudnn", "nvidia-cudnn-cu13"},
        {"libcufft", "nvidia-cufft"},         {"libcufile", "nvidia-cufile"},
        {"libcupti", "nvidia-cuda-cupti"},    {"libcurand", "nvidia-curand"},
        {"libcusolver", "nvidia-cusolver"},   {"libcusparseLt", "nvidia-cusparselt-cu13"},
        {"libcusparse", "nvidia-cusparse"},   {"libcudart", "nvidia-cuda-runtime"},
        {"libnccl", "nvidia-nccl-cu13"},      {"libnvrtc", "nvidia-cuda-nvrtc"},
        {"libnvJitLink", "nvidia-nvjitlink"}, {"libnvshmem", "nvidia-nvshmem-cu13"},
        {"libnvToolsExt", "nvidia-nvtx"},
    };
    for (const auto& [library, package] : packages)
        if (message.find(library) != std::string::npos)
            return fmt::format(" The Python package {} contains it (python3 -m pip install {}).", package, package);
    return {};
}

fs::path folder_of_torch() {
    if (const char* folder = std::getenv("KVSCOPE_TORCH_CUDA_DIR"); folder && *folder) return folder;
    Dl_info info{};
    const auto* of_torch = reinterpret_cast<const void*>(&at::globalContext);
    return dladdr(of_torch, &info) && info.dli_fname ? fs::path(info.dli_fname).parent_path() : fs::path();
}

/// Checks that the files in `folder` (torch/lib) belong to the version with which the program was built.
void require_version(const fs::path& folder) {
    std::string found;
    for (const char* name : {"version.py", "../build-version"}) {  // in the Python package and in the archive
        std::ifstream file(folder / ".." / name);
        found.append(std::istreambuf_iterator<char>(file), {});
    }
    if (found.find(TORCH_VERSION) == std::string::npos)
        throw Unavailable(fmt::format("{} does not belong to PyTorch {}, which kvscope was built with. {}",
                                      folder.string(), TORCH_VERSION, how_to_install));
}

void open_torch() {
    const fs::path folder = folder_of_torch();
    const std::array names{"libc10_cuda.so", "libtorch_cuda.so"};
    for (const char* name : names) {
        std::error_code error;
        if (!fs::exists(folder / name, error))
            throw Unavailable(fmt::format("{} was not found. {}", (folder / name).string(), how_to_install));
    }
    require_version(folder);
    for (const char* name : names) {
        const fs::path file = folder / name;
        if (dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL)) continue;
        const char* reason = dlerror();
        const std::string told = reason ? reason : "unknown error";
        throw Unavailable(fmt::format("{} cannot be loaded: {}.{}", file.string(), told, package_of(told)));
    }
    try {
        // NOLINTNEXTLINE(readability-static-accessed-through-instance): as libtorch documents the call
        if (!at::globalContext().hasCUDA()) throw Failed("libtorch finds no usable card");
        at::globalContext().lazyInitDevice(at::kCUDA);
        at::globalContext().setAllowBF16ReductionCuBLAS(false);
    } catch (const c10::Error& error) {
        throw Failed(std::string("libtorch cannot use the card: ") + error.what_without_backtrace());
    }
}

template <class Function>
Function* function(const char* symbol) {
    return reinterpret_cast<Function*>(kernels::cuda::find_library_function(symbol));
}

template <class Function, class... Arguments>
void call(const char* symbol, Arguments... arguments) {
    std::array<char, 512> message{};
    if (!function<Function>(symbol)(arguments..., message.data(), message.size()))
        throw Failed(std::string("CUDA: ") + message.data());
}

class CudaBackend final : public TorchBackend {
 public:
    explicit CudaBackend(int number)
        : TorchBackend(at::Device(at::kCUDA, static_cast<int8_t>(number))), number_(number) {}

    std::string name() const override { return fmt::format("cuda:{}", number_); }
    bool is_processor() const override { return false; }
    void wait() const override {
        use();
        void* stream = nullptr;  // nullptr is the default stream
        call<abi::Synchronize>(abi::synchronize_symbol, stream);
    }
    int64_t rows_alike() const override { return rows_of_own_product; }
    bool reads(kernels::WeightFormat) const override { return true; }

    void* allocate(size_t bytes) const override {
        use();
        return TorchBackend::allocate(bytes);
    }
    void upload(void* to, const void* from, size_t bytes) const override {
        use();
        call<abi::Copy>(abi::copy_symbol, to, from, bytes);
    }
    void download(void* to, const void* from, size_t bytes) const override {
        use();
        call<abi::Copy>(abi::copy_symbol, to, from, bytes);
    }

    void embed(const kernels::Embed& problem) const override {
        if (problem.ids.empty() || problem.columns % 8 != 0) return TorchBackend::embed(problem);
        const auto n = static_cast<int64_t>(problem.ids.size());
        const abi::RowLookup lookup{.format = problem.format,
                                    .table = problem.weight,
                                    .n_table_rows = *std::max_element(problem.ids.begin(), problem.ids.end()) + 1,
                                    .width = problem.columns,
                                    .rows = problem.ids.data(),
                                    .n_rows = n,
                                    .out = problem.out};
        const auto bytes = function<abi::LookUpRowsWorkspace>(abi::look_up_rows_workspace_symbol)(&lookup);
        run<abi::LookUpRows>(abi::look_up_rows_symbol, bytes, &lookup);
        if (problem.dtype == kernels::DType::f32) return;
        at::Tensor rows = array(problem.out, {n, problem.columns}, {problem.columns, 1}, at::kFloat);
        rows.copy_(rows.to(at::kBFloat16));
    }
    void expand_weights(const kernels::ExpandWeights& problem) const override {
        if (problem.in % 8 != 0) return TorchBackend::expand_weights(problem);
        run<abi::RunExpandWeights>(abi::expand_weights_symbol, 0, &problem);
    }
    void linear(const kernels::Linear& problem) const override {
        if (problem.in % 8 != 0) return TorchBackend::linear(problem);
        if (problem.n_rows <= rows_of_own_product) return run<abi::RunLinear>(abi::linear_symbol, 0, &problem);
        multiply_blocks(problem);
    }
    void rms_norm(const kernels::RmsNorm& problem) const override { run_alone(abi::rms_norm_symbol, problem); }
    void add_rms_norm(const kernels::AddRmsNorm& problem) const override {
        run_alone(abi::add_rms_norm_symbol, problem);
    }
    void swiglu(const kernels::SwiGlu& problem) const override { run_alone(abi::swiglu_symbol, problem); }
    void rope(const kernels::Rope& problem) const override { run_alone(abi::rope_symbol, problem); }

    void attention_prefill(std::span<const kernels::PrefillAttention> problems) const override {
        if (problems.empty()) return;
        const auto& first = problems.front();
        if (first.head_dim % 8 != 0 || first.head_dim > most_head_dim) return TorchBackend::attention_prefill(problems);
        const size_t n = problems.size();
        const auto bytes =
            function<abi::AttentionPrefillWorkspace>(abi::attention_prefill_workspace_symbol)(problems.data(), n);
        run<abi::AttentionPrefill>(abi::attention_prefill_symbol, bytes, problems.data(), n);
    }
    void attention_decode(std::span<const kernels::DecodeRow> rows, int head_dim, kernels::DType dtype,
                          float scale) const override {
        if (rows.empty()) return;
        if (head_dim > most_head_dim) return TorchBackend::attention_decode(rows, head_dim, dtype, scale);
        const auto bytes = function<abi::AttentionDecodeWorkspace>(abi::attention_decode_workspace_symbol)(
            rows.data(), rows.size(), head_dim, dtype);
        run<abi::AttentionDecode>(abi::attention_decode_symbol, bytes, rows.data(), rows.size(), head_dim, dtype,
                                  scale);
    }
    void window_attention(const kernels::WindowAttention& problem) const override {
        run_window(abi::window_attention_symbol, problem);
    }
    void window_attention_head_max(const kernels::WindowAttention& problem) const override {
        run_window(abi::window_peak_symbol, problem);
    }
    void copy_rows(std::span<const kernels::RowCopy> copies) const override {
        if (copies.empty()) return;
        const size_t n = copies.size();
        const auto bytes = function<abi::CopyRowsWorkspace>(abi::copy_rows_workspace_symbol)(copies.data(), n);
        run<abi::CopyRows>(abi::copy_rows_symbol, bytes, copies.data(), n);
    }
    void row_errors(std::span<const kernels::RowErrors> problems) const override {
        const auto n_of = [](const kernels::RowErrors& problem) {
            return static_cast<size_t>(problem.n_rows) * static_cast<size_t>(problem.n_heads);
        };
        size_t n = 0;
        for (const kernels::RowErrors& problem : problems) n += n_of(problem);
        if (n == 0) return;
        // All errors are copied at once, because each copy waits for the device.
        const kernels::DeviceArray errors(*this, n * sizeof(double));
        auto* next = static_cast<double*>(errors.data());
        for (const kernels::RowErrors& problem : problems) {
            if (n_of(problem) == 0) continue;
            kernels::RowErrors there = problem;
            there.errors = next;
            run_alone(abi::row_errors_symbol, there);
            next += n_of(problem);
        }
        std::vector<double> here(n);
        download(here.data(), errors.data(), n * sizeof(double));
        const double* from = here.data();
        for (const kernels::RowErrors& problem : problems) {
            std::copy_n(from, n_of(problem), problem.errors);
            from += n_of(problem);
        }
    }

 private:
    void use() const { call<abi::SetDevice>(abi::set_device_symbol, number_); }

    template <class Function, class... Arguments>
    void run(const char* symbol, size_t workspace_bytes, Arguments... arguments) const {
        const std::lock_guard lock(mutex_);
        use();
        if (workspace_bytes > workspace_.nbytes())
            workspace_ = at::empty({static_cast<int64_t>(workspace_bytes + workspace_bytes / 2)},
                                   at::TensorOptions().dtype(at::kByte).device(at::kCUDA, number_));
        void* stream = nullptr;  // nullptr is the default stream
        call<Function>(symbol, arguments..., workspace_bytes == 0 ? nullptr : workspace_.data_ptr(), workspace_bytes,
                       stream);
    }
    template <class Problem>
    void run_alone(const char* symbol, const Problem& problem) const {
        run<abi::Kernel<Problem>>(symbol, 0, &problem);
    }
    void run_window(const char* symbol, const kernels::WindowAttention& problem) const {
        kernels::WindowAttention whole = problem;
        if (whole.scale == 0) whole.scale = 1.0f / std::sqrt(static_cast<float>(problem.head_dim));
        if (whole.query_head_stride == 0) whole.query_head_stride = int64_t{problem.window} * problem.head_dim;
        const auto bytes = function<abi::RunWindowAttentionWorkspace>(abi::window_attention_workspace_symbol)(&whole);
        run<abi::RunWindowAttention>(symbol, bytes, &whole);
    }

    /// Multiplies in blocks of equal size, so that a row's result does not depend on the number of rows.
    void multiply_blocks(const kernels::Linear& problem) const {
        const int64_t in = problem.in, out = problem.out;
        const auto type = problem.dtype == kernels::DType::bf16 ? at::kBFloat16 : at::kFloat;
        const auto options = at::TensorOptions().dtype(type).device(at::kCUDA, number_);
        const auto format = problem.format.value_or(kernels::weight_format_of(problem.dtype));
        at::Tensor weight;
        if (format == kernels::weight_format_of(problem.dtype)) {
            weight = array(problem.weight, {out, in}, {in, 1}, type);
        } else {
            weight = at::empty({out, in}, options);
            expand_weights({.format = format,
                            .n_rows = out,
                            .in = in,
                            .rows = problem.weight,
                            .dtype = problem.dtype,
                            .out = weight.data_ptr()});
        }
        const int64_t stride = problem.x_stride ? problem.x_stride : in,
                      y_stride = problem.y_stride ? problem.y_stride : out;
        const auto y_type = problem.y_dtype == kernels::DType::bf16 ? at::kBFloat16 : at::kFloat;
        const at::Tensor x = array(problem.x, {problem.n_rows, in}, {stride, 1}, type);
        const at::Tensor y = array(problem.y, {problem.n_rows, out}, {y_stride, 1}, y_type);
        // A bias must be added before the sums are rounded.
        const bool in_place = y_type == type && !problem.bias;
        for (int64_t first = 0; first < problem.n_rows; first += rows_of_block) {
            const int64_t n = std::min(rows_of_block, problem.n_rows - first);
            at::Tensor block = x.narrow(0, first, n), there = y.narrow(0, first, n);
            if (n < rows_of_block) {
                const at::Tensor whole = at::zeros({rows_of_block, stride}, options).narrow(1, 0, in);
                whole.narrow(0, 0, n).copy_(block);
                block = whole;
                there = at::empty({rows_of_block, y_stride}, y.options()).narrow(1, 0, out);
            }
            if (in_place) {
                at::mm_out(there, block, weight.t());
            } else {
                at::Tensor sums =
                    type == at::kFloat ? at::mm(block, weight.t()) : at::mm(block, weight.t(), at::kFloat);
                if (problem.bias) sums.add_(array(problem.bias, {out}, {1}, at::kFloat));
                there.copy_(sums);
            }
            if (n < rows_of_block) y.narrow(0, first, n).copy_(there.narrow(0, 0, n));
        }
    }

    int number_;
    mutable std::mutex mutex_;
    mutable at::Tensor workspace_ = at::empty({0}, at::kByte);
};

}  // namespace

int count_cards() {
    int n = 0;
    call<abi::CountDevices>(abi::count_devices_symbol, &n);
    return n;
}

Card read_card_properties(int number) {
    abi::DeviceProperties found{};
    call<abi::DescribeDevice>(abi::describe_device_symbol, number, &found);
    return {.name = found.name,
            .total_bytes = found.total_bytes,
            .free_bytes = found.free_bytes,
            .bytes_per_second = found.bytes_per_second};
}

void give_back_unused_memory(int number) {
    open_cuda_device(number);  // loads libtorch's CUDA libraries
    try {
        c10::getDeviceAllocator(at::kCUDA)->emptyCache();
    } catch (const c10::Error&) {
    }
}

const ComputeDevice& open_cuda_device(int number) {
    static std::mutex mutex;
    static std::map<int, ComputeDevice>& opened = *new std::map<int, ComputeDevice>;
    const std::lock_guard lock(mutex);
    if (const auto known = opened.find(number); known != opened.end()) return known->second;
    kernels::cuda::find_library_function(abi::set_device_symbol);  // throws if kvscope's own library is missing
    open_torch();
    const auto* backend = new CudaBackend(number);  // never destroyed
    return opened[number] = {at::Device(at::kCUDA, static_cast<int8_t>(number)), backend};
}

}  // namespace kvscope::engine
