/* Loops over sparse matrices and labels; the twins are in pegfan/_matrices.py. */
#include "common.h"

/* Entries ahead whose lines are asked for: enough of them on their way to hide that memory is far. */
#define AHEAD 32

/* Sort distinct keys: short runs by insertion, then runs are merged. */
static void sort_keys(uint64_t *keys, uint64_t *other, int64_t n) {
    const int64_t run = 16;
    for (int64_t start = 0; start < n; start += run) {
        const int64_t stop = start + run < n ? start + run : n;
        for (int64_t k = start + 1; k < stop; k++) {
            const uint64_t key = keys[k];
            int64_t l = k;
            for (; l > start && keys[l - 1] > key; l--) keys[l] = keys[l - 1];
            keys[l] = key;
        }
    }
    uint64_t *from = keys, *to = other;
    for (int64_t width = run; width < n; width *= 2) {
        for (int64_t start = 0; start < n; start += 2 * width) {
            const int64_t middle = start + width < n ? start + width : n;
            const int64_t stop = start + 2 * width < n ? start + 2 * width : n;
            int64_t a = start, b = middle, k = start;
            while (a < middle && b < stop) {
                const uint64_t x = from[a], y = from[b];
                const int first = x < y;
                to[k++] = first ? x : y;
                a += first, b += !first;
            }
            if (a < middle) memcpy(to + k, from + a, (size_t)(middle - a) * sizeof(uint64_t));
            if (b < stop) memcpy(to + k, from + b, (size_t)(stop - b) * sizeof(uint64_t));
        }
        uint64_t *swap = from;
        from = to, to = swap;
    }
    if (from != keys) memcpy(keys, from, (size_t)n * sizeof(uint64_t));
}

#define MOST_PARTS 512

/* The bits of keys below which parts of about eight of them differ, or more where that would be too many parts. */
ALWAYS_INLINE int next_shift(int64_t n, int bit) {
    int digits = 1;
    while (digits < 9 && n >> (digits + 3) > 1) digits++;
    return bit > digits ? bit - digits : 0;
}

#define INDEX int32_t
#define NAME(function) function##__i4
#define NAME2(function, value) function##__i4_##value
#include "matrices.inc"
#undef INDEX
#undef NAME
#undef NAME2

#define INDEX int64_t
#define NAME(function) function##__i8
#define NAME2(function, value) function##__i8_##value
#include "matrices.inc"
#undef INDEX
#undef NAME
#undef NAME2

/* Keys that share their leading bits come together, so that each group fits into a fast cache. */
static int64_t count_below(uint64_t *keys, uint64_t *other, int64_t n, int bit) {
    int64_t k = 1;
    while (k < n && keys[k] == keys[0]) k++;
    if (k >= n || bit <= 0) return n > 0;
    if (n <= 24) {
        int64_t count = 1;
        for (k = 1; k < n; k++) {
            const uint64_t key = keys[k];
            int64_t l = k;
            for (; l > 0 && keys[l - 1] > key; l--) keys[l] = keys[l - 1];
            keys[l] = key;
        }
        for (k = 1; k < n; k++) count += keys[k] != keys[k - 1];
        return count;
    }
    int64_t ends[MOST_PARTS + 1], start = 0, count = 0;
    const int shift = next_shift(n, bit);
    const int64_t parts = INT64_C(1) << (bit - shift);
    const uint64_t digits = (uint64_t)parts - 1;
    memset(ends, 0, (size_t)(parts + 1) * sizeof(int64_t));
    for (k = 0; k < n; k++) ends[(keys[k] >> shift & digits) + 1]++;
    for (k = 1; k <= parts; k++) ends[k] += ends[k - 1];
    for (k = 0; k < n; k++) other[ends[keys[k] >> shift & digits]++] = keys[k];
    for (k = 0; k < parts; k++) {
        count += count_below(other + start, keys + start, ends[k] - start, shift);
        start = ends[k];
    }
    return count;
}

int64_t count_hashes(uint64_t *hashes, int64_t n, uint64_t *room, int64_t n_room) {
    (void)n_room;
    return count_below(hashes, room, n, 64);
}
