#include "tests/engine/fake_device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <sys/mman.h>
#include <torch/library.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "engine/device/cuda_backend.h"
#include "tests/engine/torch_device.h"

namespace kvscope::engine {
namespace {

constexpr size_t whole = size_t{64} << 30;  // reserved addresses; pages are used when written
constexpr size_t alignment = 256;

/// Two address ranges at a fixed distance: the device's, which is not accessible, and the actual memory.
class Memory {
 public:
    static Memory& only() {
        static Memory& memory = *new Memory;  // never destroyed: memory may be released at the end of the program
        return memory;
    }

    void* allocate(size_t bytes) {
        const std::lock_guard lock(mutex_);
        const size_t size = rounded(bytes);
        size_t at = 0;
        if (auto found = free_.find(size); found != free_.end()) {
            at = found->second;
            free_.erase(found);
        } else {
            at = next_;
            next_ += size;
            if (next_ > whole) throw std::runtime_error("the fake device's addresses are used up");
        }
        taken_[at] = size;
        std::memset(memory_ + at, 0xff, size);  // NaN in f32 and bf16
        return device_ + at;
    }
    void release(void* data) {
        const std::lock_guard lock(mutex_);
        const size_t at = static_cast<size_t>(static_cast<char*>(data) - device_);
        const auto found = taken_.find(at);
        if (found == taken_.end()) std::abort();  // released twice, or never allocated
        std::memset(memory_ + at, 0xff, found->second);
        free_.emplace(found->second, at);
        taken_.erase(found);
    }

    /// Returns the actual memory for a device address; other addresses are returned unchanged.
    void* real(const void* data) const {
        const auto* at = static_cast<const char*>(data);
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): libtorch takes such pointers
        if (at < device_ || at >= device_ + whole) return const_cast<char*>(at);
        return memory_ + (at - device_);
    }
    bool has(const void* data) const { return real(data) != data; }

 private:
    Memory() : device_(range(PROT_NONE)), memory_(range(PROT_READ | PROT_WRITE)) {}
    static char* range(int protection) {
        void* found = mmap(nullptr, whole, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (found == MAP_FAILED) throw std::runtime_error("no range of addresses for a fake device");
        return static_cast<char*>(found);
    }
    /// Rounds to few different sizes, so that released memory can be reused.
    static size_t rounded(size_t bytes) {
        size_t size = alignment;
        while (size < bytes) size *= 2;
        return size;
    }

    char *device_, *memory_;
    std::mutex mutex_;
    size_t next_ = 0;
    std::multimap<size_t, size_t> free_;  // by size
    std::map<size_t, size_t> taken_;
};

void release(void* data) {
    if (data) Memory::only().release(data);
}

class FakeAllocator final : public c10::Allocator {
 public:
    c10::DataPtr allocate(size_t bytes) override {
        void* data = bytes == 0 ? nullptr : Memory::only().allocate(bytes);
        return {data, data, &release, at::Device(at::kPrivateUse1, 0)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &release; }
    void copy_data(void* to, const void* from, size_t bytes) const override {
        std::memcpy(Memory::only().real(to), Memory::only().real(from), bytes);
    }
};

/// Returns the actual memory as a tensor on the processor.
at::Tensor real_of(const at::Tensor& there) {
    return at::from_blob(Memory::only().real(there.data_ptr()), there.sizes(), there.strides(),
                         at::TensorOptions().dtype(there.scalar_type()));
}

at::Tensor empty(c10::SymIntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
    return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(sizes), c10::GetAllocator(at::kPrivateUse1),
                                     c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type.value_or(at::kFloat),
                                     format);
}

at::Tensor empty_strided(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, std::optional<at::ScalarType> type,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
    return at::detail::empty_strided_generic(
        C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), c10::GetAllocator(at::kPrivateUse1),
        c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type.value_or(at::kFloat));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
    real_of(to).copy_(real_of(from));
    return to;
}

at::Tensor as_strided(const at::Tensor& self, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides,
                      std::optional<c10::SymInt> offset) {
    return at::native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides),
                                             offset ? std::optional<int64_t>(offset->expect_int()) : std::nullopt);
}

at::Tensor view(const at::Tensor& self, c10::SymIntArrayRef sizes) {
    return at::native::view(self, C10_AS_INTARRAYREF_SLOW(sizes));
}

/// Runs any other function on the processor, with the actual memory.
void compute(const c10::OperatorHandle& function, torch::jit::Stack* stack) {
    const size_t n = function.schema().arguments().size(), first = stack->size() - n;
    std::vector<std::pair<at::Tensor, at::Tensor>>
        replaced;  // tensors on the device and their counterparts on the processor
    const auto replace = [&](const at::Tensor& there) {
        if (!there.defined() || !there.is_privateuseone()) return there;
        replaced.emplace_back(there, real_of(there));
        return replaced.back().second;
    };
    for (size_t i = first; i < stack->size(); ++i) {
        c10::IValue& argument = (*stack)[i];
        if (argument.isTensor()) {
            argument = replace(argument.toTensor());
        } else if (argument.isTensorList()) {
            std::vector<at::Tensor> all;
            for (const at::Tensor& each : argument.toTensorVector()) all.push_back(replace(each));
            argument = all;
        } else if (argument.isDevice()) {
            argument = at::Device(at::kCPU);
        }
    }
    function.callBoxed(stack);
    for (c10::IValue& result : *stack) {
        if (!result.isTensor()) continue;
        const at::Tensor here = result.toTensor();
        bool known = false;
        for (const auto& [there, real_one] : replaced)
            if (here.is_same(real_one)) {
                result = there;
                known = true;
            }
        if (known) continue;
        at::Tensor there = at::empty_strided(here.sizes(), here.strides(), here.options().device(at::kPrivateUse1, 0));
        real_of(there).copy_(here);
        result = there;
    }
}

/// Reports the only device.
struct FakeGuard final : c10::impl::DeviceGuardImplInterface {
    FakeGuard() = default;
    explicit FakeGuard(c10::DeviceType) {}
    c10::DeviceType type() const override { return at::kPrivateUse1; }
    c10::Device exchangeDevice(c10::Device device) const override { return device; }
    c10::Device getDevice() const override { return {at::kPrivateUse1, 0}; }
    void setDevice(c10::Device) const override {}
    void uncheckedSetDevice(c10::Device) const noexcept override {}
    c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
    c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
    c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, FakeGuard)

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("empty.memory_format", &empty);
    m.impl("empty_strided", &empty_strided);
    m.impl("_copy_from", &copy_from);
    m.impl("as_strided", &as_strided);
    m.impl("view", &view);
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&compute>()); }

class FakeBackend final : public TorchDevice {
 public:
    FakeBackend() : TorchDevice(at::Device(at::kPrivateUse1, 0)) {}
    std::string name() const override { return "fake"; }
    int64_t rows_alike() const override { return 40; }  // so that work is divided as on a card

 protected:
    at::Tensor array(const void* data, at::IntArrayRef sizes, at::IntArrayRef strides,
                     at::ScalarType type) const override {
        if (data != nullptr && !Memory::only().has(data))
            throw std::logic_error("an array of a device's function is not in the device's memory");
        return at::from_blob(
            Memory::only().real(data), sizes, strides, [](void*) {}, at::TensorOptions().dtype(type));
    }
};

/// Runs the processor's kernels on the actual memory.
class FakeKernels final : public kernels::Backend {
 public:
    std::string name() const override { return "fake-kernels"; }
    bool is_processor() const override { return false; }
    void* allocate(size_t bytes) const override { return Memory::only().allocate(bytes); }
    void release(void* data) const noexcept override { Memory::only().release(data); }
    void upload(void* to, const void* from, size_t bytes) const override { std::memcpy(real(to), from, bytes); }
    void download(void* to, const void* from, size_t bytes) const override { std::memcpy(to, real(from), bytes); }
    bool reads(kernels::WeightFormat) const override { return true; }

    void embed(const kernels::Embed& problem) const override {
        run(&kernels::Backend::embed, problem, [](auto& p) { return std::tie(p.weight, p.out); });
    }
    void expand_weights(const kernels::ExpandWeights& problem) const override {
        run(&kernels::Backend::expand_weights, problem, [](auto& p) { return std::tie(p.rows, p.out); });
    }
    void linear(const kernels::Linear& problem) const override {
        run(&kernels::Backend::linear, problem, [](auto& p) { return std::tie(p.x, p.weight, p.bias, p.y); });
    }
    void rms_norm(const kernels::RmsNorm& problem) const override {
        run(&kernels::Backend::rms_norm, problem, [](auto& p) { return std::tie(p.x, p.weight, p.out); });
    }
    void add_rms_norm(const kernels::AddRmsNorm& problem) const override {
        run(&kernels::Backend::add_rms_norm, problem,
            [](auto& p) { return std::tie(p.residual, p.delta, p.weight, p.out); });
    }
    void swiglu(const kernels::SwiGlu& problem) const override {
        run(&kernels::Backend::swiglu, problem, [](auto& p) { return std::tie(p.gate, p.up, p.out); });
    }
    void rope(const kernels::Rope& problem) const override {
        run(&kernels::Backend::rope, problem, [](auto& p) { return std::tie(p.x, p.cosines, p.sines); });
    }
    void attention_prefill(std::span<const kernels::PrefillAttention> problems) const override {
        processor().attention_prefill(
            translated(problems, [](auto& p) { return std::tie(p.q, p.k, p.v, p.cardinality, p.out, p.column_sums); }));
    }
    void attention_decode(std::span<const kernels::DecodeRow> rows, int head_dim, kernels::DType dtype,
                          float scale) const override {
        const auto there =
            translated(rows, [](auto& p) { return std::tie(p.q, p.k, p.v, p.cardinality, p.out, p.attention); });
        processor().attention_decode(there, head_dim, dtype, scale);
    }
    void window_attention(const kernels::WindowAttention& problem) const override {
        run(&kernels::Backend::window_attention, problem, [](auto& p) { return std::tie(p.queries, p.keys, p.mean); });
    }
    void window_attention_head_max(const kernels::WindowAttention& problem) const override {
        run(&kernels::Backend::window_attention_head_max, problem,
            [](auto& p) { return std::tie(p.queries, p.keys, p.mean); });
    }
    void copy_rows(std::span<const kernels::RowCopy> copies) const override {
        processor().copy_rows(translated(copies, [](auto& p) { return std::tie(p.from, p.to); }));
    }
    void row_errors(std::span<const kernels::RowErrors> problems) const override {
        processor().row_errors(translated(problems, [](auto& p) { return std::tie(p.found, p.expected); }));
    }

 private:
    static const kernels::Backend& processor() { return kernels::cpu_backend(); }
    static void* real(const void* data) {
        if (data == nullptr) return nullptr;
        if (!Memory::only().has(data))
            throw std::logic_error("an array of a device's function is not in the device's memory");
        return Memory::only().real(data);
    }
    template <class Problem, class Arrays>
    static Problem translated(Problem problem, Arrays arrays) {
        std::apply([](auto&... data) { ((data = static_cast<std::decay_t<decltype(data)>>(real(data))), ...); },
                   arrays(problem));
        return problem;
    }
    template <class Problem, class Arrays>
    static std::vector<Problem> translated(std::span<const Problem> problems, Arrays arrays) {
        std::vector<Problem> all;
        for (const Problem& problem : problems) all.push_back(translated(problem, arrays));
        return all;
    }
    template <class Problem, class Arrays>
    void run(void (kernels::Backend::*function)(const Problem&) const, const Problem& problem, Arrays arrays) const {
        (processor().*function)(translated(problem, arrays));
    }
};

ComputeDevice on_fake_memory(const kernels::Backend& backend) {
    static FakeAllocator allocator;
    c10::SetAllocator(at::kPrivateUse1, &allocator);
    return {at::Device(at::kPrivateUse1, 0), &backend};
}

}  // namespace

const ComputeDevice& fake_device() {
    static const FakeBackend backend;
    static const ComputeDevice device = on_fake_memory(backend);
    return device;
}

ComputeDevice device_of_tests() {
    const char* asked = std::getenv("KVSCOPE_TEST_DEVICE");
    const std::string name = asked ? asked : "";
    if (name.empty()) return {};
    static const TorchDevice torch(at::kCPU);
    if (name == "torch") return {at::kCPU, &torch};
    if (name == "fake") return fake_device();
    static const FakeKernels fake_kernels;
    if (name == "fake-kernels") return on_fake_memory(fake_kernels);
    if (name == "cuda") return open_cuda_device(0);
    throw std::runtime_error("KVSCOPE_TEST_DEVICE is '" + name + "', expected torch, fake, fake-kernels or cuda");
}

}  // namespace kvscope::engine
