/* Which instructions this processor has and its system keeps the registers of. Asked here, because what compilers offer
   for it (__builtin_cpu_supports) does not link with every one of them. */
#ifndef PEGFAN_CPU_H
#define PEGFAN_CPU_H

enum { CPU_AVX2 = 1, CPU_FMA = 2, CPU_AVX512F = 4, CPU_AVX512VL = 8, CPU_ASKED = 16 };

#if defined(__x86_64__) && !defined(_MSC_VER)
#include <cpuid.h>

static inline int cpu_ask(void) {
    unsigned a, b, c, d, low, high;
    int flags = CPU_ASKED;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return flags;
    const int fused = (c & bit_FMA) != 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0)); /* which registers the system keeps */
    if ((low & 0x06) != 0x06 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return flags;
    if (fused) flags |= CPU_FMA;
    if (b & bit_AVX2) flags |= CPU_AVX2;
    if ((low & 0xE0) != 0xE0) return flags;
    if (b & bit_AVX512F) flags |= CPU_AVX512F;
    if (b & bit_AVX512VL) flags |= CPU_AVX512VL;
    return flags;
}
#else
static inline int cpu_ask(void) { return CPU_ASKED; }
#endif

/* Whether the processor has all of some instructions. Threads that ask at once all write the same answer. */
static inline int cpu_has(int wanted) {
    static int flags = 0;
    if (!flags) flags = cpu_ask();
    return (flags & wanted) == wanted;
}

#endif
