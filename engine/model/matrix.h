#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "engine/device/compute_device.h"
#include "kernels/types.h"
#include "kernels/weight_format.h"

namespace kvscope::engine {

/// A weight (rows, columns) as it is multiplied: parts below one another, each in one format, as the model's file holds
/// it or as numbers of the model's type. Copies share their memory, which is a device's.
class Matrix {
 public:
    struct Part {
        kernels::WeightFormat format = kernels::WeightFormat::f32;
        int64_t rows = 0;
        at::Tensor data;  ///< (rows, columns) of the model's type, or (rows, bytes of a row) u8
    };

    Matrix() = default;
    /// @param type of the model: what its numbers are rounded to
    Matrix(int64_t columns, kernels::DType type) : columns_(columns), type_(type) {}

    /// Of numbers that are there, (rows, columns) f32 or bf16; shares their memory.
    static Matrix of(const at::Tensor& numbers);

    /// The same on another device: as numbers where that does not read a part's format. From the processor's memory.
    Matrix on(const ComputeDevice& device) const;

    /// Makes room for more rows below those that are there, in the processor's memory. @returns it
    at::Tensor add_rows(kernels::WeightFormat format, int64_t rows);

    bool defined() const { return !parts_.empty(); }
    int64_t rows() const { return rows_; }
    int64_t columns() const { return columns_; }
    kernels::DType type() const { return type_; }
    const ComputeDevice& device() const { return device_; }
    const std::vector<Part>& parts() const { return parts_; }
    /// Bytes that it takes in memory.
    int64_t n_bytes() const;

    /// Rows [first, first + n) as numbers of the model's type, (n, columns): those that `product` multiplies. Where
    /// they lie as such, no copy is made.
    at::Tensor numbers(int64_t first, int64_t n) const;
    at::Tensor numbers() const { return numbers(0, rows_); }

    /// Single rows, (ids, columns) f32. @param ids below rows()
    at::Tensor pick(std::span<const int32_t> ids) const;

 private:
    /// The part that has a row, and the row's number there.
    std::pair<const Part*, int64_t> place_of(int64_t row) const;
    bool is_plain(const Part& part) const { return part.format == kernels::format_of(type_); }

    int64_t rows_ = 0, columns_ = 0;
    kernels::DType type_ = kernels::DType::f32;
    ComputeDevice device_;
    std::vector<Part> parts_;
};

/// x W^T + bias: x (n, in) of the matrix's type, bias (out) f32, or undefined; all on the matrix's device. A row's
/// result depends neither on other rows nor on threads, nor on the formats, but for what numbers they hold.
/// @param type of the result, f32 or that of x
/// @returns (n, out)
at::Tensor product(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias, at::ScalarType type);

}  // namespace kvscope::engine
