#pragma once

namespace kvscope::kernels {

/// Returns the larger number, or NaN if either is NaN. std::max may drop a NaN.
template <class T>
[[nodiscard]] constexpr T larger(T a, T b) {
    return !(a >= b) && a == a ? b : a;  // NOLINT(misc-redundant-expression): false for NaN
}

}  // namespace kvscope::kernels
