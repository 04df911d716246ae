#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <span>
#include <string>

#include "kernels/attention_decode.h"
#include "kernels/attention_prefill.h"
#include "kernels/copy_rows.h"
#include "kernels/embed.h"
#include "kernels/linear.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/row_errors.h"
#include "kernels/swiglu.h"
#include "kernels/weight_format.h"
#include "kernels/window_attention.h"

namespace kvscope::kernels {

/// A device's memory and the engine's computations on it, for any number of threads. Arrays are in device memory unless
/// noted. Calls from one thread take effect in order; host memory that a call writes is complete on return.
class Backend {
 public:
    virtual ~Backend() = default;

    [[nodiscard]] virtual std::string name() const = 0;
    [[nodiscard]] virtual bool is_processor() const = 0;
    /// Returns the largest number of rows for which linear() gives each row the same bits as a call with only this row.
    [[nodiscard]] virtual int64_t rows_alike() const { return std::numeric_limits<int64_t>::max(); }

    /// Throws std::runtime_error if memory is insufficient.
    [[nodiscard]] virtual void* allocate(size_t bytes) const = 0;
    virtual void release(void* data) const noexcept = 0;
    /// upload() copies from host memory, download() to host memory.
    virtual void upload(void* to, const void* from, size_t bytes) const = 0;
    virtual void download(void* to, const void* from, size_t bytes) const = 0;

    /// Waits until the device has finished all earlier calls. Other calls may return before the device has finished.
    virtual void wait() const {}

    /// Mutex for several calls in a row that calls of other threads must not interrupt.
    [[nodiscard]] std::mutex& turns() const { return turns_; }

    /// Whether `linear` and `embed` accept weights in this format.
    [[nodiscard]] virtual bool reads(WeightFormat format) const = 0;

    // The following functions work like the free functions of the same names.

    virtual void embed(const Embed& problem) const = 0;
    virtual void expand_weights(const ExpandWeights& problem) const = 0;
    virtual void linear(const Linear& problem) const = 0;
    virtual void rms_norm(const RmsNorm& problem) const = 0;
    virtual void add_rms_norm(const AddRmsNorm& problem) const = 0;
    virtual void swiglu(const SwiGlu& problem) const = 0;
    virtual void rope(const Rope& problem) const = 0;
    virtual void attention_prefill(std::span<const PrefillAttention> problems) const = 0;
    /// Only the CPU supports rows with `entries`.
    virtual void attention_decode(std::span<const DecodeRow> rows, int head_dim, DType dtype, float scale) const = 0;
    virtual void window_attention(const WindowAttention& problem) const = 0;
    virtual void window_attention_head_max(const WindowAttention& problem) const = 0;
    virtual void copy_rows(std::span<const RowCopy> copies) const = 0;
    virtual void row_errors(std::span<const RowErrors> problems) const = 0;

 private:
    mutable std::mutex turns_;
};

[[nodiscard]] const Backend& cpu_backend();

class DeviceArray {
 public:
    DeviceArray(const Backend& backend, size_t bytes)
        : backend_(backend), data_(bytes == 0 ? nullptr : backend.allocate(bytes)) {}
    ~DeviceArray() {
        if (data_) backend_.release(data_);
    }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;

    [[nodiscard]] void* data() const { return data_; }

 private:
    const Backend& backend_;
    void* data_;
};

}  // namespace kvscope::kernels
