#pragma once

/// Function attributes for loops that the compiler vectorises by itself, once per instruction set; a kernel calls the
/// copy that `simd_level()` allows. KVSCOPE_AVX2 and KVSCOPE_AVX512 exist on x86-64 only; other processors have the
/// generic copy.
#if defined(__x86_64__) && defined(__GNUC__)
#define KVSCOPE_AVX2 __attribute__((target("avx2,fma")))
#define KVSCOPE_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma,prefer-vector-width=512")))
#endif

/// The common body of such copies: it has to be compiled into each.
#define KVSCOPE_INLINE inline __attribute__((always_inline))
