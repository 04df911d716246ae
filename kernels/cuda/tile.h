#pragma once

#include <cstdint>

#include "kernels/cuda/block.h"

namespace kvscope::kernels::cuda {

/// Logit of an unseen entry, and largest logit before the first entry: finite, so that weights become 0 instead of NaN.
inline constexpr float masked_logit = -1e30f;
inline constexpr float lowest_maximum = -1e20f;
inline constexpr float log2_e = 1.4426950408889634f;

KVSCOPE_HOST_DEVICE float bits_to_float(uint32_t bits) {
#ifdef __CUDA_ARCH__
    return __uint_as_float(bits);
#else
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
#endif
}

KVSCOPE_HOST_DEVICE uint32_t float_to_bits(float x) {
#ifdef __CUDA_ARCH__
    return __float_as_uint(x);
#else
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
#endif
}

KVSCOPE_HOST_DEVICE float exp2_of(float x) {
#ifdef __CUDA_ARCH__
    return exp2f(x);
#else
    return std::exp2(x);
#endif
}

/// Returns 2^x with one instruction instead of four. Returns 0 instead of subnormal numbers.
KVSCOPE_HOST_DEVICE float quick_exp2_of(float x) {
#ifdef __CUDA_ARCH__
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
#else
    return std::exp2(x);
#endif
}

/// Returns a * b + c. A GPU rounds the result only once.
KVSCOPE_HOST_DEVICE float multiply_add(float a, float b, float c) {
#ifdef __CUDA_ARCH__
    return fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/// Multiplies or adds with separate rounding, for results that must equal another implementation's results.
KVSCOPE_HOST_DEVICE float multiply_rounded(float a, float b) {
#ifdef __CUDA_ARCH__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

KVSCOPE_HOST_DEVICE float add_rounded(float a, float b) {
#ifdef __CUDA_ARCH__
    return __fadd_rn(a, b);
#else
    return a + b;
#endif
}

template <class T>
KVSCOPE_HOST_DEVICE T min_of_two(T a, T b) {
    return b < a ? b : a;
}

template <class T>
KVSCOPE_HOST_DEVICE T max_of_two(T a, T b) {
    return a < b ? b : a;
}

/// Like max_of_two(), but with one instruction instead of two. If one operand is NaN, returns the other.
KVSCOPE_HOST_DEVICE float quick_max_of_two(float a, float b) {
#ifdef __CUDA_ARCH__
    return fmaxf(a, b);
#else
    return a >= b || b != b ? a : b;
#endif
}

KVSCOPE_HOST_DEVICE int64_t divide_rounding_up(int64_t n, int64_t size) { return (n + size - 1) / size; }

struct Add {
    template <class T>
    KVSCOPE_DEVICE T operator()(T a, T b) const {
        return a + b;
    }
    template <class T, int n>
    KVSCOPE_DEVICE Numbers<T, n> operator()(Numbers<T, n> a, const Numbers<T, n>& b) const {
        KVSCOPE_UNROLL
        for (int i = 0; i < n; ++i) a[i] += b[i];
        return a;
    }
};

struct Most {
    KVSCOPE_DEVICE float operator()(float a, float b) const { return max_of_two(a, b); }
    template <int n>
    KVSCOPE_DEVICE Numbers<float, n> operator()(Numbers<float, n> a, const Numbers<float, n>& b) const {
        KVSCOPE_UNROLL
        for (int i = 0; i < n; ++i) a[i] = quick_max_of_two(a[i], b[i]);
        return a;
    }
};

/// Softmax sum over some entries. `total` is the sum of 2^(logit - largest), so logits are in base 2.
struct Softmax {
    float largest = lowest_maximum;
    float total = 0;
};

#ifdef __CUDACC__
KVSCOPE_DEVICE Softmax exchanged(const Softmax& x, int step) {
    return {exchanged(x.largest, step), exchanged(x.total, step)};
}
#endif

struct Join {
    KVSCOPE_HOST_DEVICE Softmax operator()(const Softmax& a, const Softmax& b) const {
        const float largest = max_of_two(a.largest, b.largest);
        return {largest, a.total * exp2_of(a.largest - largest) + b.total * exp2_of(b.largest - largest)};
    }
};

KVSCOPE_HOST_DEVICE float reciprocal_or_zero(float total) { return total == 0 ? 0.0f : 1.0f / total; }

struct Range {
    int64_t begin, end;
};

/// Returns piece `index` of n items split into `pieces` whose lengths differ by at most one.
KVSCOPE_HOST_DEVICE Range chunk_range(int64_t n, int64_t pieces, int64_t index) {
    return {n * index / pieces, n * (index + 1) / pieces};
}

/// Returns which of n items contains `block`. Items are in the order of their blocks; items without blocks are skipped.
template <class Item>
KVSCOPE_HOST_DEVICE int64_t item_of_block(const Item* items, int64_t n, int64_t block, int64_t n_blocks) {
    const float share = (static_cast<float>(block) + 0.5f) / static_cast<float>(n_blocks);
    const auto guess = min_of_two<int64_t>(n - 1, static_cast<int64_t>(share * static_cast<float>(n)));
    const int64_t own = items[guess].first_block, next = guess + 1 < n ? items[guess + 1].first_block : block + 1;
    if (own <= block && block < next) return guess;
    int64_t low = 0, high = n;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (items[middle].first_block <= block)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/// Elements per load of 16 bytes.
template <class T>
inline constexpr int elements_per_load = 16 / static_cast<int>(sizeof(T));

template <class T>
struct Loaded {
    Four words;
    KVSCOPE_DEVICE float operator[](int i) const {
        if constexpr (sizeof(T) == 4)
            return bits_to_float(words[i]);
        else
            return bits_to_float(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000u);
    }
};

/// Loads elements_per_load elements from p. Requires that they exist and are aligned.
template <class T>
KVSCOPE_DEVICE Loaded<T> load_aligned(const T* p) {
#ifdef __CUDACC__
    const uint4 x = *reinterpret_cast<const uint4*>(p);
    return {{x.x, x.y, x.z, x.w}};
#else
    Loaded<T> x;
    std::memcpy(&x, p, sizeof x);
    return x;
#endif
}

/// Loads 16 bytes of device memory that no kernel writes meanwhile and that are read only once.
template <class T>
KVSCOPE_DEVICE Four load_once(const T* p) {
#ifdef __CUDACC__
    Four x;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
        : "l"(__cvta_generic_to_global(p)));
    return x;
#else
    return load_aligned(p).words;
#endif
}

/// Loads up to elements_per_load elements from p at any alignment. Zeros replace elements from `left` on.
template <class T>
KVSCOPE_DEVICE Loaded<T> load_some(const T* p, int left) {
    Loaded<T> x;
    KVSCOPE_UNROLL
    for (int i = 0; i < 4; ++i) {
        if constexpr (sizeof(T) == 4) {
            x.words[i] = i < left ? float_to_bits(p[i]) : 0u;
        } else {
            const uint32_t low = 2 * i < left ? p[2 * i].bits : 0u, high = 2 * i + 1 < left ? p[2 * i + 1].bits : 0u;
            x.words[i] = low | high << 16;
        }
    }
    return x;
}

template <bool aligned, class T>
KVSCOPE_DEVICE Loaded<T> load_elements(const T* p, int left) {
    if constexpr (aligned)
        return load_aligned(p);
    else
        return load_some(p, left);
}

KVSCOPE_DEVICE uint32_t pack_bf16_pair(float low, float high) {
#ifdef __CUDACC__
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return bf16_from_float(low).bits | static_cast<uint32_t>(bf16_from_float(high).bits) << 16;
#endif
}

/// Starts to copy one element or 16 bytes to shared memory. Copies zeros if `is_there` is false. commit_copies() ends a
/// group; wait_for_copies<n>() waits for all but the thread's last n groups. Other threads also need a barrier.
template <int bytes = 16, class T>
KVSCOPE_DEVICE void begin_copy(T* to, const T* from, bool is_there) {
#ifdef __CUDACC__
    const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
    const auto global = __cvta_generic_to_global(from);
    const int n = is_there ? bytes : 0;
    if constexpr (bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(n) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(global), "n"(bytes), "r"(n)
                     : "memory");
#else
    if (is_there)
        std::memcpy(static_cast<void*>(to), from, bytes);
    else
        std::memset(static_cast<void*>(to), 0, bytes);
#endif
}

KVSCOPE_DEVICE void commit_copies() {
#ifdef __CUDACC__
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int n>
KVSCOPE_DEVICE void wait_for_copies() {
#ifdef __CUDACC__
    asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
#endif
}

/// Whether vectors of `width` elements, `stride` apart, can be read 16 bytes at a time.
template <class T>
[[nodiscard]] inline bool is_aligned(const void* data, int64_t stride, int64_t width) {
    return reinterpret_cast<uintptr_t>(data) % 16 == 0 && stride % elements_per_load<T> == 0 &&
           width % elements_per_load<T> == 0;
}

}  // namespace kvscope::kernels::cuda
