/* Loops over sparse matrices and labels; their declarations are in pegfan/_matrices.py. */
#include "common.h"

/* Entries ahead whose lines are asked for: enough of them on their way to hide that memory is far. */
enum { AHEAD = 32 };

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

/* The places of a row's entries in the order of their columns, from column << 32 | entry. Short rows count for every
   entry how many come before, which needs no branches. */
ALWAYS_INLINE void sort_entries(uint64_t *keys, uint64_t *other, int64_t n) {
    if (n > 32) {
        sort_keys(keys, other, n);
        return;
    }
    int32_t columns[32];
    const int64_t wide = n > 16 ? 32 : 16;
    for (int64_t k = 0; k < n; k++) columns[k] = (int32_t)((keys[k] >> 32) ^ 0x80000000), other[k] = keys[k];
    for (int64_t k = n; k < wide; k++) columns[k] = INT32_MAX;
    int64_t before = 0;
    for (int64_t k = 0; k < n; k++) {
        const int32_t column = columns[k];
        int32_t place = 0;
        if (wide == 16)
            for (int64_t l = 0; l < 16; l++) place += columns[l] < column;
        else
            for (int64_t l = 0; l < 32; l++) place += columns[l] < column;
        keys[place] = other[k];
        before += place;
    }
    if (before == n * (n - 1) / 2) return; /* of every two entries one comes first, but where a column stands twice */
    if (n) memcpy(keys, other, (size_t)n * sizeof(uint64_t));
    sort_keys(keys, other, n);
}

/* Room for as many keys, twice, and more where it must grow: what was in it is lost. NULL without memory. */
static uint64_t *grow_keys(uint64_t *keys, int64_t *room, int64_t length) {
    if (length <= *room) return keys;
    free(keys);
    *room = 2 * length;
    return malloc((size_t)*room * 2 * sizeof(uint64_t));
}

enum { MOST_PARTS = 512 };

/* The bits of keys below which parts of about eight of them differ, or more where that would be too many parts. */
ALWAYS_INLINE int next_shift(int64_t n, int bit) {
    int digits = 1;
    while (digits < 9 && n >> (digits + 3) > 1) digits++;
    return bit > digits ? bit - digits : 0;
}

#define INDEX int32_t
#define NAME(function) function##__i4
#include "matrices.inc"
#define INDEX int64_t
#define NAME(function) function##__i8
#include "matrices.inc"
#define INDEX int32_t
#define VALUE uint32_t
#define NAME(function) function##__i4_u4
#include "moving.inc"
#define INDEX int32_t
#define VALUE uint64_t
#define NAME(function) function##__i4_u8
#include "moving.inc"
#define INDEX int64_t
#define VALUE uint32_t
#define NAME(function) function##__i8_u4
#include "moving.inc"
#define INDEX int64_t
#define VALUE uint64_t
#define NAME(function) function##__i8_u8
#include "moving.inc"

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

int64_t count_hashes(uint64_t *hashes, int64_t n, uint64_t *room) {
    return count_below(hashes, room, n, 64);
}
