#include "kernels/score_pooling.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/larger.h"

namespace kvscope::kernels {

namespace {

/// Computes all maxima in two passes (van Herk): running maxima from left and right within blocks of `width`.
template <class T>
void pool_max(const T* in, int64_t n, int64_t width, T* out) {
    const int64_t half = width / 2;
    std::vector<T> from_left(in, in + n), from_right(in, in + n);
    for (int64_t i = 1; i < n; ++i) {
        if (i % width != 0) from_left[i] = larger(from_left[i - 1], in[i]);
    }
    for (int64_t i = n - 2; i >= 0; --i) {
        if ((i + 1) % width != 0) from_right[i] = larger(from_right[i + 1], in[i]);
    }
    for (int64_t i = 0; i < n; ++i) {
        const int64_t first = i - half, last = i + half;
        if (first < 0) {
            out[i] = from_left[std::min(last, n - 1)];  // last < width, so the window is inside the first block
        } else if (last >= n) {
            out[i] = from_right[first];
            if ((n - 1) / width != first / width) out[i] = larger(out[i], from_left[n - 1]);
        } else {
            out[i] = larger(from_right[first], from_left[last]);
        }
    }
}

constexpr int64_t most_narrow_width =
    31;  ///< up to this width, one pass per window position is faster than van Herk's method

/// Whether all values are non-negative and not NaN, so that the maximum has the same bits in any order.
template <class T>
bool is_unsigned(const T* in, int64_t n) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr Bits infinity_bits = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
    Bits beyond = 0;
    for (int64_t i = 0; i < n; ++i) beyond |= static_cast<Bits>(std::bit_cast<Bits>(in[i]) > infinity_bits);
    return beyond == 0;
}

/// Like pool_max() for narrow windows of non-negative numbers, in loops that vectorize. `out` must not be `in`.
template <class T>
void pool_max_narrow(const T* in, int64_t n, int64_t width, T* out) {
    constexpr int64_t block_positions = 2048;  // fits into the first-level cache
    for (int64_t begin = 0; begin < n; begin += block_positions) {
        const int64_t end = std::min(begin + block_positions, n);
        std::copy(in + begin, in + end, out + begin);
        for (int64_t step = 1; step <= width / 2; ++step) {
            for (int64_t i = begin; i < std::min(end, n - step); ++i)
                out[i] = out[i] < in[i + step] ? in[i + step] : out[i];
            for (int64_t i = std::max(begin, step); i < end; ++i)
                out[i] = out[i] < in[i - step] ? in[i - step] : out[i];
        }
    }
}

template <class T>
void pool_avg(const T* in, int64_t n, int64_t width, T* out) {
    const int64_t half = width / 2;
    for (int64_t i = 0; i < n; ++i) {
        double sum = 0.0;
        const int64_t last = std::min(i + half, n - 1);
        for (int64_t j = std::max<int64_t>(i - half, 0); j <= last; ++j) sum += in[j];
        out[i] = static_cast<T>(sum / static_cast<double>(width));
    }
}

template <class T>
void pool_any(Pooling kind, const T* in, int64_t n, int64_t width, T* out) {
    if (n <= 0) return;
    if (kind == Pooling::none) {
        std::copy(in, in + n, out);
        return;
    }
    if (width < 1 || width % 2 == 0) {
        throw std::invalid_argument("pooling: the width must be odd and positive, found " + std::to_string(width));
    }
    // Beyond 2 n + 1, the width does not change the maximum, but it changes the average, which divides by `width`.
    if (kind == Pooling::max && width <= most_narrow_width && in != out && is_unsigned(in, n)) {
        pool_max_narrow(in, n, width, out);
    } else if (kind == Pooling::max) {
        pool_max(in, n, std::min(width, 2 * n + 1), out);
    } else {
        pool_avg(in, n, width, out);
    }
}

}  // namespace

void pool(Pooling kind, const float* in, int64_t n, int64_t width, float* out) { pool_any(kind, in, n, width, out); }
void pool(Pooling kind, const double* in, int64_t n, int64_t width, double* out) { pool_any(kind, in, n, width, out); }

}  // namespace kvscope::kernels
