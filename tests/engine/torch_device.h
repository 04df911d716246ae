#pragma once

#include "engine/device/torch_backend.h"

namespace kvscope::engine {

/// Computes everything with libtorch, as the reference for the kernels. Only the order of sums differs.
class TorchDevice : public TorchBackend {
 public:
    using TorchBackend::TorchBackend;

    [[nodiscard]] std::string name() const override { return "torch:" + place_.str(); }
    [[nodiscard]] bool is_processor() const override { return place_.is_cpu(); }
    void upload(void* to, const void* from, size_t bytes) const override;
    void download(void* to, const void* from, size_t bytes) const override;
    [[nodiscard]] bool reads(kernels::WeightFormat format) const override;

    void rms_norm(const kernels::RmsNorm& problem) const override;
    void add_rms_norm(const kernels::AddRmsNorm& problem) const override;
    void swiglu(const kernels::SwiGlu& problem) const override;
    void rope(const kernels::Rope& problem) const override;
    void window_attention(const kernels::WindowAttention& problem) const override;
    void window_attention_head_max(const kernels::WindowAttention& problem) const override;
    void copy_rows(std::span<const kernels::RowCopy> copies) const override;
    void row_errors(std::span<const kernels::RowErrors> problems) const override;

 private:
    [[nodiscard]] at::Tensor window_weights(const kernels::WindowAttention& problem) const;
};

}  // namespace kvscope::engine
