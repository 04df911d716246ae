#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/bf16.h"

#ifdef __CUDACC__
#define KVSCOPE_DEVICE __device__ __forceinline__
#define KVSCOPE_HOST_DEVICE __host__ __device__ inline
#else
#include <type_traits>
#include <vector>
#define KVSCOPE_DEVICE inline
#define KVSCOPE_HOST_DEVICE inline
#endif

#ifdef __CUDA_ARCH__
#define KVSCOPE_PRAGMA(x) _Pragma(#x)
#define KVSCOPE_UNROLL KVSCOPE_PRAGMA(unroll)
#define KVSCOPE_UNROLL_BY(n) KVSCOPE_PRAGMA(unroll n)
#else
#define KVSCOPE_UNROLL
#define KVSCOPE_UNROLL_BY(n)
#endif

/// Interface of a block of threads, which runs on a GPU and, in tests, thread by thread on the host. Kernels use
///   threads(f)    calls f(thread) for all threads, then waits at a barrier;
///   registers(f)  has no barrier: until the next barrier, f must not write memory that another thread reads;
/// and operations of a warp's threads. Own keeps the values of each thread between these calls.
namespace kvscope::kernels::cuda {

/// An array that stays in registers if its indices are constants.
template <class T, int n>
struct Numbers {
    T at[n];
    KVSCOPE_HOST_DEVICE T& operator[](int i) { return at[i]; }
    KVSCOPE_HOST_DEVICE const T& operator[](int i) const { return at[i]; }
};

using Four = Numbers<uint32_t, 4>;

#ifdef __CUDACC__

KVSCOPE_DEVICE float exchanged(float x, int step) { return __shfl_xor_sync(0xffffffffu, x, step); }
KVSCOPE_DEVICE double exchanged(double x, int step) { return __shfl_xor_sync(0xffffffffu, x, step); }
template <class T, int n>
KVSCOPE_DEVICE Numbers<T, n> exchanged(const Numbers<T, n>& x, int step) {
    Numbers<T, n> other;
    KVSCOPE_UNROLL
    for (int i = 0; i < n; ++i) other[i] = exchanged(x[i], step);
    return other;
}

template <int n_threads>
class DeviceBlock {
 public:
    static constexpr int block_threads = n_threads;

    template <class T>
    struct Own {
        T value;
        KVSCOPE_DEVICE T& operator[](int) { return value; }
    };

    template <class F>
    KVSCOPE_DEVICE void registers(const F& f) {
        f(static_cast<int>(threadIdx.x));
    }

    /// Like registers(f), but recomputes values that depend on the thread number, which saves registers.
    template <class F>
    KVSCOPE_DEVICE void anew(const F& f) {
        int t;
        asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
        __builtin_assume(t >= 0 && t < n_threads);
        f(t);
    }

    template <class F>
    KVSCOPE_DEVICE void threads(const F& f) {
        f(static_cast<int>(threadIdx.x));
        __syncthreads();
    }

    /// Sets x = combine(x, x of the lane whose number differs in the bit `step`).
    template <class T, class F>
    KVSCOPE_DEVICE void join_lanes(Own<T>& x, int step, const F& combine) {
        x.value = combine(x.value, exchanged(x.value, step));
    }

    /// Sets any[t] = 1 if f is true for at least one thread of t's warp, else 0.
    template <class F>
    KVSCOPE_DEVICE void ask_warps(Own<int>& any, const F& f) {
        any.value = __any_sync(0xffffffffu, f(static_cast<int>(threadIdx.x)));
    }

    /// Whether this block is the last of n to call is_last(). The last block sees all writes. `arrived` is initially 0.
    KVSCOPE_DEVICE bool is_last(int* arrived, int n) {
        __shared__ int before;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            before = atomicAdd(arrived, 1);
            __threadfence();
        }
        __syncthreads();
        return before == n - 1;
    }

    /// Loads four 8 x 8 matrices of 16-bit numbers from shared memory; address(t) is row t % 8 of matrix t % 32 / 8. A
    /// thread gets the numbers at row lane / 4, columns 2 (lane % 4) and the next, of each matrix or its transpose.
    template <bool transposed, class Registers, class Address>
    KVSCOPE_DEVICE void load_matrices(const Registers& to, const Address& address) {
        const int t = static_cast<int>(threadIdx.x);
        Four& r = to(t);
        const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(address(t)));
        if constexpr (transposed)
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                         : "r"(from)
                         : "memory");
        else
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                         : "r"(from)
                         : "memory");
    }

    /// Computes c (16, 8) += a (16, 16) b (16, 8) per warp, as mma.m16n8k16. `b` returns the first of two registers.
    template <class C, class A, class B>
    KVSCOPE_DEVICE void multiply(const C& c, const A& a, const B& b) {
        const int t = static_cast<int>(threadIdx.x);
        Numbers<float, 4>& to = c(t);
        const Four& x = a(t);
        const uint32_t* y = b(t);
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(to[0]), "+f"(to[1]), "+f"(to[2]), "+f"(to[3])
            : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    }
};

#else

/// The same interface on the host. A test runs the threads of a block in ascending and in descending order, and so
/// notices missing barriers.
template <int n_threads>
class HostBlock {
 public:
    static constexpr int block_threads = n_threads;
    explicit HostBlock(bool backwards = false) : backwards_(backwards) {}

    template <class T>
    class Own {
     public:
        /// The values begin as garbage, as on a GPU.
        Own() : values_(n_threads) {
            static_assert(std::is_trivially_copyable_v<T>);
            std::memset(static_cast<void*>(values_.data()), 0xff, values_.size() * sizeof(T));
        }
        [[nodiscard]] T& operator[](int t) { return values_[static_cast<size_t>(t)]; }

     private:
        std::vector<T> values_;
    };

    template <class F>
    void registers(const F& f) {
        for (int i = 0; i < n_threads; ++i) f(backwards_ ? n_threads - 1 - i : i);
    }

    template <class F>
    void anew(const F& f) {
        registers(f);
    }

    template <class F>
    void threads(const F& f) {
        registers(f);
    }

    template <class T, class F>
    void join_lanes(Own<T>& x, int step, const F& combine) {
        Own<T> joined;
        for (int t = 0; t < n_threads; ++t) joined[t] = combine(x[t], x[t ^ step]);
        x = joined;
    }

    template <class F>
    void ask_warps(Own<int>& any, const F& f) {
        for (int warp = 0; warp < n_threads; warp += 32) {
            int holds = 0;
            for (int lane = 0; lane < 32; ++lane) holds |= f(warp + lane) ? 1 : 0;
            for (int lane = 0; lane < 32; ++lane) any[warp + lane] = holds;
        }
    }

    [[nodiscard]] bool is_last(int* arrived, int n) { return ++*arrived == n; }

    template <bool transposed, class Registers, class Address>
    void load_matrices(const Registers& to, const Address& address) {
        for (int t = 0; t < n_threads; ++t) {
            const int lane = t % 32, warp = t - lane;
            for (int matrix = 0; matrix < 4; ++matrix) {
                uint32_t word = 0;
                for (int e = 0; e < 2; ++e) {
                    const int along = lane / 4, across = 2 * (lane % 4) + e;
                    const bf16* row = address(warp + 8 * matrix + (transposed ? across : along));
                    word |= static_cast<uint32_t>(row[transposed ? along : across].bits) << 16 * e;
                }
                to(t)[matrix] = word;
            }
        }
    }

    template <class C, class A, class B>
    void multiply(const C& c, const A& a, const B& b) {
        const auto half = [](uint32_t word, int e) { return to_float(bf16{static_cast<uint16_t>(word >> 16 * e)}); };
        for (int warp = 0; warp < n_threads; warp += 32) {
            float left[16][16], right[8][16];
            for (int lane = 0; lane < 32; ++lane)
                for (int e = 0; e < 2; ++e) {
                    const int at = lane / 4, k = 2 * (lane % 4) + e;
                    const Four& x = a(warp + lane);
                    const uint32_t* y = b(warp + lane);
                    for (int i = 0; i < 4; ++i) left[at + i % 2 * 8][k + i / 2 * 8] = half(x[i], e);
                    for (int i = 0; i < 2; ++i) right[at][k + i * 8] = half(y[i], e);
                }
            for (int lane = 0; lane < 32; ++lane)
                for (int i = 0; i < 4; ++i) {
                    float sum = 0;
                    for (int k = 0; k < 16; ++k)
                        sum += left[lane / 4 + i / 2 * 8][k] * right[2 * (lane % 4) + i % 2][k];
                    c(warp + lane)[i] += sum;
                }
        }
    }

 private:
    bool backwards_;
};

#endif

template <class Block, class T>
using Own = typename Block::template Own<T>;

}  // namespace kvscope::kernels::cuda
