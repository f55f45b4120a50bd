/* The network for processors with AVX-512. */
#if defined(__x86_64__) && !defined(_MSC_VER)
#if defined(__clang__) && __clang_major__ >= 18 && __clang_major__ <= 21 /* there, 512 bits have a name of their own */
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,avx2,fma,evex512"))), apply_to = function)
#elif defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512vl,avx2,fma")
#endif
#include <immintrin.h>

#define LINE_AVX512
#define LOOPS network_avx512
#include "network.inc"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
