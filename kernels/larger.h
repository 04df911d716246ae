#pragma once

namespace kvscope::kernels {

/// The larger one; NaN where either is, which std::max drops on one side.
template <class T>
constexpr T larger(T a, T b) {
    return !(a >= b) && a == a ? b : a;
}

}  // namespace kvscope::kernels
