/* The network for processors with AVX2 and fused operations. */
#if defined(__x86_64__) && !defined(_MSC_VER)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#include <immintrin.h>

#define LINE_AVX2
#define LOOPS network_avx2
#include "network.inc"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
