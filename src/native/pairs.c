/* Pairs of nodes become the rows of a sparse matrix; their declarations are in pegfan/_pairs.py. */
#include "common.h"

enum { AHEAD = 24 };

int64_t drop_repeats(uint64_t *keys, int64_t m) {
    int64_t kept = m < 1 ? m : 1;
    for (int64_t e = 1; e < m; e++) {
        keys[kept] = keys[e];
        kept += keys[e] != keys[kept - 1];
    }
    return kept;
}

WIDE int64_t count_loops(const uint64_t *keys, int64_t m, int64_t bits) {
    const uint64_t low = ((uint64_t)1 << bits) - 1;
    int64_t loops = 0;
    for (int64_t e = 0; e < m; e++) loops += keys[e] >> bits == (keys[e] & low);
    return loops;
}

#define INDEX int32_t
#define NAME(function) function##__i4
#include "pairs.inc"
#define INDEX int64_t
#define NAME(function) function##__i8
#include "pairs.inc"
