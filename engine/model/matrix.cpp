#include "engine/model/matrix.h"

#include <algorithm>

#include "engine/device/tensor_functions.h"
#include "kernels/backend.h"

namespace kvscope::engine {
namespace {

// With at least this many rows, expanding a weight once is faster than reading it again for every 192 rows.
constexpr int64_t rows_worth_numbers = 384;

at::ScalarType scalar_of(kernels::DType type) { return type == kernels::DType::bf16 ? at::kBFloat16 : at::kFloat; }

const char* row_of(const Matrix::Part& part, int64_t row) {
    return static_cast<const char*>(part.data.const_data_ptr()) +
           static_cast<size_t>(row * part.data.size(1)) * part.data.element_size();
}

}  // namespace

Matrix Matrix::on(const ComputeDevice& device) const {
    Matrix there(columns_, type_);
    there.rows_ = rows_;
    there.device_ = device;
    int64_t first = 0;
    for (const Part& part : parts_) {
        const bool as_it_is = device.backend->reads(part.format);
        there.parts_.push_back({as_it_is ? part.format : kernels::weight_format_of(type_), part.rows,
                                (as_it_is ? part.data : numbers(first, part.rows)).to(device.place)});
        first += part.rows;
    }
    return there;
}

at::Tensor Matrix::add_rows(kernels::WeightFormat format, int64_t rows) {
    const bool plain = format == kernels::weight_format_of(type_);
    const auto width = plain ? columns_ : static_cast<int64_t>(kernels::row_bytes(format, columns_));
    parts_.push_back({format, rows, at::empty({rows, width}, plain ? scalar_of(type_) : at::kByte)});
    rows_ += rows;
    return parts_.back().data;
}

std::pair<const Matrix::Part*, int64_t> Matrix::place_of(int64_t row) const {
    auto part = parts_.begin();
    for (; row >= part->rows; ++part) row -= part->rows;
    return {&*part, row};
}

at::Tensor Matrix::numbers(int64_t first, int64_t n) const {
    const auto [part, row] = place_of(first);
    if (is_plain(*part) && row + n <= part->rows) return part->data.narrow(0, row, n);
    at::Tensor all = at::empty({n, columns_}, at::TensorOptions().dtype(scalar_of(type_)).device(device_.place));
    auto* out = static_cast<char*>(all.data_ptr());
    for (int64_t done = 0; done < n;) {
        const auto [of, begin] = place_of(first + done);
        const int64_t count = std::min(n - done, of->rows - begin);
        device_.backend->expand_weights({.format = of->format,
                                         .n_rows = count,
                                         .in = columns_,
                                         .rows = row_of(*of, begin),
                                         .dtype = type_,
                                         .out = out});
        out += static_cast<size_t>(count * columns_) * all.element_size();
        done += count;
    }
    return all;
}

at::Tensor Matrix::pick(std::span<const int32_t> ids) const {
    at::Tensor all = at::empty({static_cast<int64_t>(ids.size()), columns_},
                               at::TensorOptions().dtype(at::kFloat).device(device_.place));
    auto* out = all.data_ptr<float>();
    for (size_t begin = 0, end = 0; begin < ids.size(); begin = end) {
        const Part* part = place_of(ids[begin]).first;
        std::vector<int32_t> rows;  // rows of the same part
        for (end = begin; end < ids.size() && place_of(ids[end]).first == part; ++end)
            rows.push_back(static_cast<int32_t>(place_of(ids[end]).second));
        device_.backend->embed({.format = part->format,
                                .columns = columns_,
                                .weight = part->data.const_data_ptr(),
                                .dtype = type_,
                                .ids = rows,
                                .out = out});
        out += static_cast<int64_t>(rows.size()) * columns_;
    }
    return all;
}

at::Tensor product(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias, at::ScalarType type) {
    at::Tensor y = at::empty({x.size(0), weight.rows()}, x.options().dtype(type));
    const bool writes_out = x.size(0) >= rows_worth_numbers;
    int64_t first = 0;
    for (const Matrix::Part& part : weight.parts()) {
        const at::Tensor numbers = writes_out ? weight.numbers(first, part.rows) : at::Tensor();
        weight.device().backend->linear(
            {.dtype = weight.type(),
             .n_rows = x.size(0),
             .in = weight.columns(),
             .out = part.rows,
             .x = x.const_data_ptr(),
             .weight = writes_out ? numbers.const_data_ptr() : part.data.const_data_ptr(),
             .format = writes_out ? kernels::weight_format_of(weight.type()) : part.format,
             .bias = bias.defined() ? bias.const_data_ptr<float>() + first : nullptr,
             .y = static_cast<char*>(y.data_ptr()) + static_cast<size_t>(first) * y.element_size(),
             .y_dtype = type == at::kFloat ? kernels::DType::f32 : kernels::DType::bf16,
             .y_stride = weight.rows()});
        first += part.rows;
    }
    return y;
}

}  // namespace kvscope::engine
