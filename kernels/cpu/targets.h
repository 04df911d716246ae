#pragma once

// Attributes for copies of a function per instruction set, chosen by simd_level(). Only x86-64 has more than one copy.
#if defined(__x86_64__) && defined(__GNUC__)
#define KVSCOPE_AVX2 __attribute__((target("avx2,fma")))
#define KVSCOPE_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma,prefer-vector-width=512")))
#endif

// Marks the common body of the copies, which must be inlined into each copy.
#define KVSCOPE_INLINE inline __attribute__((always_inline))
