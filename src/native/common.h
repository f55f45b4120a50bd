/* What all C files of the extension share. */
#ifndef PEGFAN_COMMON_H
#define PEGFAN_COMMON_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loops.h" /* made from the declarations in src/pegfan, see build.py */

#if defined(_MSC_VER)
#define restrict __restrict
#define ALWAYS_INLINE static __forceinline
#define PREFETCH(address) ((void)(address))
#else
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define PREFETCH(address) __builtin_prefetch(address)
#endif

/* A function compiled for several processors; which one runs is decided when the library is loaded. No flag lets the
   compiler fuse or reorder sums, so that all of them give the same bits. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WIDE
#endif

/* Scramble 64 bits, one to one (the finaliser of splitmix64). */
ALWAYS_INLINE uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

#endif
