#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string>

#include "kernels/backend.h"

namespace kvscope::engine {

/// Computes with libtorch, as the reference for the kernels and in place of missing kernels. Only the order of sums
/// differs from the kernels.
class TorchBackend : public kernels::Backend {
 public:
    explicit TorchBackend(at::Device place) : place_(place) {}

    [[nodiscard]] std::string name() const override { return "torch:" + place_.str(); }
    [[nodiscard]] bool is_processor() const override { return place_.is_cpu(); }
    [[nodiscard]] void* allocate(size_t bytes) const override;
    void release(void* data) const noexcept override;
    void upload(void* to, const void* from, size_t bytes) const override;
    void download(void* to, const void* from, size_t bytes) const override;

    [[nodiscard]] bool reads(kernels::WeightFormat format) const override;

    void embed(const kernels::Embed& problem) const override;
    void expand_weights(const kernels::ExpandWeights& problem) const override;
    void linear(const kernels::Linear& problem) const override;
    void rms_norm(const kernels::RmsNorm& problem) const override;
    void add_rms_norm(const kernels::AddRmsNorm& problem) const override;
    void swiglu(const kernels::SwiGlu& problem) const override;
    void rope(const kernels::Rope& problem) const override;
    void attention_prefill(std::span<const kernels::PrefillAttention> problems) const override;
    void attention_decode(std::span<const kernels::DecodeRow> rows, int head_dim, kernels::DType dtype,
                          float scale) const override;
    void window_attention(const kernels::WindowAttention& problem) const override;
    void window_attention_head_max(const kernels::WindowAttention& problem) const override;
    void copy_rows(std::span<const kernels::RowCopy> copies) const override;
    void row_errors(std::span<const kernels::RowErrors> problems) const override;

 protected:
    [[nodiscard]] virtual at::Tensor array(const void* data, at::IntArrayRef sizes, at::IntArrayRef strides,
                                           at::ScalarType type) const;

 private:
    [[nodiscard]] at::Tensor rows(const void* data, int64_t n, int64_t width, int64_t stride,
                                  kernels::DType type) const;
    void attend(const kernels::PrefillAttention& problem) const;
    void attend(std::span<const kernels::DecodeRow> chain, int head_dim, kernels::DType dtype, float scale) const;
    [[nodiscard]] at::Tensor window_weights(const kernels::WindowAttention& problem) const;
    [[nodiscard]] at::Tensor on_device(const at::Tensor& host) const;

    at::Device place_;
};

}  // namespace kvscope::engine
