/* Products of sparse matrices with dense ones; the twin is in pegfan/_products.py. Every sum is taken entry by entry and
   every product is rounded, as SciPy does it: the same bits, on every machine. */
#include "common.h"

enum { AHEAD = 12 }; /* entries: how far ahead rows are asked for, as scattered ones are far away */

#if defined(__GNUC__)
typedef float half_f4 __attribute__((vector_size(32), aligned(4))); /* halves of cache lines: more, gcc keeps in memory */
typedef double half_f8 __attribute__((vector_size(32), aligned(8)));
#define AT(HALF, p, k) (*(HALF *)((p) + (k) * LANES))
#define WHOLE_LINES(NUMBER, HALF)                                                                                    \
    enum { LANES = 32 / sizeof(NUMBER) };                                                                            \
    for (; c + 8 * LANES <= width; c += 8 * LANES) {                                                                 \
        HALF s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0}, s6 = {0}, s7 = {0};                         \
        for (int64_t e = start; e < stop; e++) {                                                                     \
            const NUMBER *x = B + (int64_t)indices[e] * width + c;                                                   \
            const NUMBER *soon = B + (int64_t)indices[e + AHEAD < end ? e + AHEAD : e] * width + c;                  \
            PREFETCH(soon), PREFETCH(soon + 2 * LANES), PREFETCH(soon + 4 * LANES), PREFETCH(soon + 6 * LANES);      \
            NUMBER f = data[e];                                                                                      \
            s0 += f * AT(const HALF, x, 0), s1 += f * AT(const HALF, x, 1);                                          \
            s2 += f * AT(const HALF, x, 2), s3 += f * AT(const HALF, x, 3);                                          \
            s4 += f * AT(const HALF, x, 4), s5 += f * AT(const HALF, x, 5);                                          \
            s6 += f * AT(const HALF, x, 6), s7 += f * AT(const HALF, x, 7);                                          \
        }                                                                                                            \
        AT(HALF, to + c, 0) = s0, AT(HALF, to + c, 1) = s1, AT(HALF, to + c, 2) = s2, AT(HALF, to + c, 3) = s3;      \
        AT(HALF, to + c, 4) = s4, AT(HALF, to + c, 5) = s5, AT(HALF, to + c, 6) = s6, AT(HALF, to + c, 7) = s7;      \
    }                                                                                                                \
    for (; c + LANES <= width; c += LANES) {                                                                         \
        HALF s = {0};                                                                                                \
        for (int64_t e = start; e < stop; e++) {                                                                     \
            PREFETCH(B + (int64_t)indices[e + AHEAD < end ? e + AHEAD : e] * width + c);                             \
            s += data[e] * AT(const HALF, B + (int64_t)indices[e] * width + c, 0);                                   \
        }                                                                                                            \
        AT(HALF, to + c, 0) = s;                                                                                     \
    }
#else
#define WHOLE_LINES(NUMBER, HALF)
#endif

#define SPARSE_PRODUCT(NAME, PTR, INDEX, NUMBER, HALF)                                                              \
    WIDE void NAME(const PTR *pointers, int64_t n_ptr, const INDEX *indices, int64_t n_indices, const NUMBER *data,  \
                   int64_t n_data, const NUMBER *B, int64_t rows_B, int64_t width, NUMBER *out, int64_t rows_out,    \
                   int64_t width_out, int64_t first, int64_t last) {                                                 \
        (void)n_ptr, (void)n_indices, (void)n_data, (void)rows_B, (void)rows_out, (void)width_out;                   \
        int64_t end = pointers[last];                                                                                \
        for (int64_t i = first; i < last; i++) {                                                                     \
            int64_t start = pointers[i], stop = pointers[i + 1], c = 0;                                              \
            NUMBER *to = out + i * width;                                                                            \
            WHOLE_LINES(NUMBER, HALF)                                                                               \
            for (; c < width; c += 8) {                                                                              \
                NUMBER rest[8] = {0};                                                                                \
                int64_t columns = width - c < 8 ? width - c : 8;                                                     \
                for (int64_t e = start; e < stop; e++) {                                                             \
                    const NUMBER *x = B + (int64_t)indices[e] * width + c;                                           \
                    PREFETCH(B + (int64_t)indices[e + AHEAD < end ? e + AHEAD : e] * width + c);                     \
                    for (int64_t t = 0; t < columns; t++) rest[t] += data[e] * x[t];                                 \
                }                                                                                                    \
                for (int64_t t = 0; t < columns; t++) to[c + t] = rest[t];                                           \
            }                                                                                                        \
        }                                                                                                            \
    }

SPARSE_PRODUCT(sparse_product__f4_i4_i4, int32_t, int32_t, float, half_f4)
SPARSE_PRODUCT(sparse_product__f4_i8_i4, int64_t, int32_t, float, half_f4)
SPARSE_PRODUCT(sparse_product__f4_i8_i8, int64_t, int64_t, float, half_f4)
SPARSE_PRODUCT(sparse_product__f8_i4_i4, int32_t, int32_t, double, half_f8)
SPARSE_PRODUCT(sparse_product__f8_i8_i4, int64_t, int32_t, double, half_f8)
SPARSE_PRODUCT(sparse_product__f8_i8_i8, int64_t, int64_t, double, half_f8)
