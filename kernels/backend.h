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

/// A device: its memory, and what the engine computes there. The arrays of a problem lie in the device's memory but for
/// those whose comment says otherwise. Calls of one thread take effect one after the other; what a call writes to the
/// processor's memory is there when it returns. A row's result depends neither on other rows in the call nor on how
/// many there are, up to `rows_alike`. Usable from several threads.
class Backend {
 public:
    virtual ~Backend() = default;

    /// As messages call it: "cpu", "cuda:0".
    virtual std::string name() const = 0;
    /// Whether its memory is the processor's.
    virtual bool is_processor() const = 0;
    /// A product gives a row the same up to so many rows in a call, and something else in the last bits from there on.
    virtual int64_t rows_alike() const { return std::numeric_limits<int64_t>::max(); }

    /// @throws std::runtime_error where there is not so much
    virtual void* allocate(size_t bytes) const = 0;
    virtual void release(void* data) const noexcept = 0;
    /// From the processor's memory, and to it.
    virtual void upload(void* to, const void* from, size_t bytes) const = 0;
    virtual void download(void* to, const void* from, size_t bytes) const = 0;

    /// Until all that was asked for is done: other functions may return before.
    virtual void wait() const {}

    /// Held by who calls it from a thread beside others: several calls that belong together are then not interleaved
    /// with others'.
    std::mutex& turns() const { return turns_; }

    /// Whether `linear` and `embed` read weights in that format.
    virtual bool reads(WeightFormat format) const = 0;

    // As the functions of these names do.

    virtual void embed(const Embed& problem) const = 0;
    virtual void expand_weights(const ExpandWeights& problem) const = 0;
    virtual void linear(const Linear& problem) const = 0;
    virtual void rms_norm(const RmsNorm& problem) const = 0;
    virtual void add_rms_norm(const AddRmsNorm& problem) const = 0;
    virtual void swiglu(const SwiGlu& problem) const = 0;
    virtual void rope(const Rope& problem) const = 0;
    virtual void attention_prefill(std::span<const PrefillAttention> problems) const = 0;
    /// Rows that have `entries` are the processor's alone.
    virtual void attention_decode(std::span<const DecodeRow> rows, int head_dim, DType dtype, float scale) const = 0;
    virtual void window_attention(const WindowAttention& problem) const = 0;
    virtual void window_peak(const WindowAttention& problem) const = 0;
    virtual void copy_rows(std::span<const RowCopy> copies) const = 0;
    virtual void row_errors(std::span<const RowErrors> problems) const = 0;

 private:
    mutable std::mutex turns_;
};

/// The processor.
const Backend& cpu_backend();

/// An array in a device's memory.
class DeviceArray {
 public:
    /// @throws std::runtime_error where there is not so much memory
    DeviceArray(const Backend& backend, size_t bytes)
        : backend_(backend), data_(bytes == 0 ? nullptr : backend.allocate(bytes)) {}
    ~DeviceArray() {
        if (data_) backend_.release(data_);
    }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;

    void* data() const { return data_; }

 private:
    const Backend& backend_;
    void* data_;
};

}  // namespace kvscope::kernels
