#include "kernels/backend.h"

#include <cstring>
#include <new>

namespace kvscope::kernels {
namespace {

class CpuBackend final : public Backend {
 public:
    std::string name() const override { return "cpu"; }
    bool is_processor() const override { return true; }

    void* allocate(size_t bytes) const override { return ::operator new(bytes, alignment); }
    void release(void* data) const noexcept override { ::operator delete(data, alignment); }
    void upload(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
    void download(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }

    bool reads(WeightFormat) const override { return true; }

    void embed(const Embed& problem) const override { kernels::embed(problem); }
    void expand_weights(const ExpandWeights& problem) const override { kernels::expand_weights(problem); }
    void linear(const Linear& problem) const override { kernels::linear(problem); }
    void rms_norm(const RmsNorm& problem) const override { kernels::rms_norm(problem); }
    void add_rms_norm(const AddRmsNorm& problem) const override { kernels::add_rms_norm(problem); }
    void swiglu(const SwiGlu& problem) const override { kernels::swiglu(problem); }
    void rope(const Rope& problem) const override { kernels::rope(problem); }
    void attention_prefill(std::span<const PrefillAttention> problems) const override {
        kernels::attention_prefill(problems);
    }
    void attention_decode(std::span<const DecodeRow> rows, int head_dim, DType dtype, float scale) const override {
        kernels::attention_decode(rows, head_dim, dtype, scale);
    }
    void window_attention(const WindowAttention& problem) const override { kernels::window_attention(problem); }
    void window_attention_head_max(const WindowAttention& problem) const override {
        kernels::window_attention_head_max(problem);
    }
    void copy_rows(std::span<const RowCopy> copies) const override { kernels::copy_rows(copies); }
    void row_errors(std::span<const RowErrors> problems) const override { kernels::row_errors(problems); }

 private:
    static constexpr std::align_val_t alignment{64};
};

}  // namespace

const Backend& cpu_backend() {
    static const CpuBackend backend;
    return backend;
}

}  // namespace kvscope::kernels
