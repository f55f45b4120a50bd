/* Pairs of nodes become the rows of a sparse matrix; the twins are in pegfan/_pairs.py. */
#include "common.h"

#define PACK(NAME, NODE)                                                                                             \
    void NAME(const NODE *first, int64_t n_first, const NODE *second, int64_t n_second, int64_t bits, int64_t both,  \
              uint64_t *keys, int64_t n_keys) {                                                                      \
        (void)n_second, (void)n_keys;                                                                                \
        for (int64_t e = 0; e < n_first; e++) {                                                                      \
            const uint64_t a = (uint64_t)first[e], b = (uint64_t)second[e];                                          \
            const int turn = both && a > b;                                                                          \
            keys[e] = (turn ? b : a) << bits | (turn ? a : b);                                                       \
        }                                                                                                            \
    }

PACK(pack_pairs__i4, int32_t)
PACK(pack_pairs__i8, int64_t)

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

#define AHEAD 24

/* Of sorted pairs: how many entries each row has, and then the rows. With `both`, an entry of a row is that of another
   pair turned round; they come first, as their columns are smaller. */
#define FILL(NAME, INDEX)                                                                                            \
    void NAME(const uint64_t *keys, int64_t m, int64_t bits, int64_t both, const double *weights, int64_t n_weights, \
              INDEX *indptr, int64_t n_ptr, INDEX *indices, int64_t n_indices, double *data, int64_t n_data,         \
              INDEX *next, int64_t n_next) {                                                                         \
        (void)n_indices;                                                                                             \
        const uint64_t low = ((uint64_t)1 << bits) - 1;                                                              \
        const int64_t n = n_ptr - 1;                                                                                 \
        if (!n_weights)                                                                                              \
            for (int64_t e = 0; e < n_data; e++) data[e] = 1.0;                                                      \
        for (int64_t r = 0; r < n_next; r++) next[r] = 0;                                                            \
        if (both)                                                                                                    \
            for (int64_t e = 0; e < m; e++) {                                                                        \
                if (e + AHEAD < m) PREFETCH(next + (keys[e + AHEAD] & low));                                         \
                next[keys[e] & low] += keys[e] >> bits != (keys[e] & low);                                           \
            }                                                                                                        \
        int64_t e = 0, place = 0;                                                                                    \
        for (int64_t r = 0; r < n; r++) {                                                                            \
            indptr[r] = (INDEX)place;                                                                                \
            const int64_t turned = both ? next[r] : 0;                                                               \
            if (both) next[r] = (INDEX)place;                                                                        \
            place += turned;                                                                                         \
            for (; e < m && (int64_t)(keys[e] >> bits) == r; e++, place++) {                                         \
                indices[place] = (INDEX)(keys[e] & low);                                                             \
                if (n_weights) data[place] = weights[e];                                                             \
            }                                                                                                        \
        }                                                                                                            \
        indptr[n] = (INDEX)place;                                                                                    \
        if (!both) return;                                                                                           \
        for (e = 0; e < m; e++) {                                                                                    \
            if (e + 2 * AHEAD < m) PREFETCH(next + (keys[e + 2 * AHEAD] & low));                                     \
            if (e + AHEAD < m) PREFETCH(indices + next[keys[e + AHEAD] & low]);                                      \
            const uint64_t row = keys[e] & low, column = keys[e] >> bits;                                            \
            if (row == column) continue;                                                                             \
            const INDEX spot = next[row]++;                                                                          \
            indices[spot] = (INDEX)column;                                                                           \
            if (n_weights) data[spot] = weights[e];                                                                  \
        }                                                                                                            \
    }

FILL(fill_rows__i4, int32_t)
FILL(fill_rows__i8, int64_t)
