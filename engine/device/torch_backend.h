#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "kernels/backend.h"

namespace kvscope::engine {

/// Computes with libtorch in place of missing kernels. Only the order of sums differs from the kernels.
class TorchBackend : public kernels::Backend {
 public:
    explicit TorchBackend(at::Device place) : place_(place) {}

    [[nodiscard]] void* allocate(size_t bytes) const override;
    void release(void* data) const noexcept override;

    void embed(const kernels::Embed& problem) const override;
    void expand_weights(const kernels::ExpandWeights& problem) const override;
    void linear(const kernels::Linear& problem) const override;
    void attention_prefill(std::span<const kernels::PrefillAttention> problems) const override;
    void attention_decode(std::span<const kernels::DecodeRow> rows, int head_dim, kernels::DType dtype,
                          float scale) const override;

 protected:
    [[nodiscard]] virtual at::Tensor array(const void* data, at::IntArrayRef sizes, at::IntArrayRef strides,
                                           at::ScalarType type) const;
    [[nodiscard]] at::Tensor rows(const void* data, int64_t n, int64_t width, int64_t stride,
                                  kernels::DType type) const;
    [[nodiscard]] at::Tensor on_device(const at::Tensor& host) const;

    at::Device place_;

 private:
    void attend(const kernels::PrefillAttention& problem) const;
    void attend(std::span<const kernels::DecodeRow> chain, int head_dim, kernels::DType dtype, float scale) const;
};

}  // namespace kvscope::engine
