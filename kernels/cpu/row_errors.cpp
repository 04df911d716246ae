#include "kernels/row_errors.h"

#include <cmath>
#include <stdexcept>

#include "kernels/bf16.h"
#include "kernels/threads/parallel.h"

namespace kvscope::kernels {
namespace {

template <class T>
double error_of(const T* found, const T* expected, int n) {
    double difference = 0, norm = 0;
    for (int c = 0; c < n; ++c) {
        const double of = double{to_float(expected[c])};
        const double delta = double{to_float(found[c])} - of;
        difference += delta * delta;
        norm += of * of;
    }
    return norm == 0 ? 0.0 : std::sqrt(difference / norm);
}

template <class T>
void compare(const RowErrors& problem) {
    double* error = problem.errors;
    for (int64_t row = 0; row < problem.n_rows; ++row) {
        const T* found = static_cast<const T*>(problem.found) + row * problem.found_stride;
        const T* expected = static_cast<const T*>(problem.expected) + row * problem.expected_stride;
        for (int head = 0; head < problem.n_heads; ++head, found += problem.head_dim, expected += problem.head_dim)
            *error++ = error_of(found, expected, problem.head_dim);
    }
}

}  // namespace

namespace {

void compare(const RowErrors& problem) {
    if (problem.dtype == DType::f32)
        compare<float>(problem);
    else if (problem.dtype == DType::bf16)
        compare<bf16>(problem);
    else
        throw std::invalid_argument("row_errors: type is f16, expected f32 or bf16");
}

}  // namespace

void row_errors(std::span<const RowErrors> problems) {
    int64_t elements = 0;
    for (const RowErrors& problem : problems) elements += problem.n_rows * problem.n_heads * problem.head_dim;
    parallel_for(static_cast<int64_t>(problems.size()), elements,
                 [&](int64_t i) { compare(problems[static_cast<size_t>(i)]); });
}

}  // namespace kvscope::kernels
