#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "engine/device/compute_device.h"
#include "kernels/types.h"
#include "kernels/weight_format.h"

namespace kvscope::engine {

/// A weight matrix (rows, columns) in blocks of rows, each in the model's type or a file's format. Copies share memory.
class Matrix {
 public:
    struct Part {
        kernels::WeightFormat format = kernels::WeightFormat::f32;
        int64_t rows = 0;
        at::Tensor data;  ///< (rows, columns) in the model's type, or (rows, bytes of a row) u8
    };

    Matrix() = default;
    Matrix(int64_t columns, kernels::DType type) : columns_(columns), type_(type) {}

    /// Copies the matrix from the processor to a device. Converts formats that the device cannot read.
    [[nodiscard]] Matrix on(const ComputeDevice& device) const;

    /// Appends uninitialized rows in the processor's memory and returns them.
    [[nodiscard]] at::Tensor add_rows(kernels::WeightFormat format, int64_t rows);

    [[nodiscard]] bool defined() const { return !parts_.empty(); }
    [[nodiscard]] int64_t rows() const { return rows_; }
    [[nodiscard]] int64_t columns() const { return columns_; }
    [[nodiscard]] kernels::DType type() const { return type_; }
    [[nodiscard]] const ComputeDevice& device() const { return device_; }
    [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }

    /// Returns rows [first, first + n) in the model's type, (n, columns). Copies only if necessary.
    [[nodiscard]] at::Tensor numbers(int64_t first, int64_t n) const;
    [[nodiscard]] at::Tensor numbers() const { return numbers(0, rows_); }

    [[nodiscard]] at::Tensor pick(std::span<const int32_t> ids) const;

 private:
    /// Returns the part that contains a row, and the row's index in the part.
    [[nodiscard]] std::pair<const Part*, int64_t> place_of(int64_t row) const;
    [[nodiscard]] bool is_plain(const Part& part) const { return part.format == kernels::weight_format_of(type_); }

    int64_t rows_ = 0, columns_ = 0;
    kernels::DType type_ = kernels::DType::f32;
    ComputeDevice device_;
    std::vector<Part> parts_;
};

/// Returns x W^T + bias, (n, out), in the given type (f32 or the type of x). A row's result depends neither on other
/// rows nor on the number of threads. @param x (n, in) of the matrix's type @param bias (out) f32, or undefined
[[nodiscard]] at::Tensor product(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias,
                                 at::ScalarType type);

}  // namespace kvscope::engine
