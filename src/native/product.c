/* Products of sparse matrices with dense ones; the twin is in pegfan/_products.py. Every sum is taken entry by entry and
   every product is rounded, as SciPy does it: the same bits, on every machine. */
#include "common.h"

enum { AHEAD = 12 }; /* entries: how far ahead rows are asked for, as scattered ones are far away */

#if defined(__GNUC__)
typedef float lines_f4 __attribute__((vector_size(64), aligned(4)));
typedef double lines_f8 __attribute__((vector_size(64), aligned(8)));
#define WHOLE_LINES(NUMBER, LINES)                                                                                   \
    enum { LANES = 64 / sizeof(NUMBER) };                                                                            \
    for (; c + 4 * LANES <= width; c += 4 * LANES) {                                                                 \
        LINES s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};                                                                \
        for (int64_t e = start; e < stop; e++) {                                                                     \
            const NUMBER *x = B + (int64_t)indices[e] * width + c;                                                   \
            const NUMBER *soon = B + (int64_t)indices[e + AHEAD < end ? e + AHEAD : e] * width + c;                  \
            PREFETCH(soon), PREFETCH(soon + LANES), PREFETCH(soon + 2 * LANES), PREFETCH(soon + 3 * LANES);          \
            NUMBER f = data[e];                                                                                      \
            s0 += f * *(const LINES *)x;                                                                             \
            s1 += f * *(const LINES *)(x + LANES);                                                                   \
            s2 += f * *(const LINES *)(x + 2 * LANES);                                                               \
            s3 += f * *(const LINES *)(x + 3 * LANES);                                                               \
        }                                                                                                            \
        *(LINES *)(to + c) = s0, *(LINES *)(to + c + LANES) = s1;                                                    \
        *(LINES *)(to + c + 2 * LANES) = s2, *(LINES *)(to + c + 3 * LANES) = s3;                                    \
    }                                                                                                                \
    for (; c + LANES <= width; c += LANES) {                                                                         \
        LINES s = {0};                                                                                               \
        for (int64_t e = start; e < stop; e++) {                                                                     \
            PREFETCH(B + (int64_t)indices[e + AHEAD < end ? e + AHEAD : e] * width + c);                             \
            s += data[e] * *(const LINES *)(B + (int64_t)indices[e] * width + c);                                    \
        }                                                                                                            \
        *(LINES *)(to + c) = s;                                                                                      \
    }
#else
#define WHOLE_LINES(NUMBER, LINES)
#endif

#define SPARSE_PRODUCT(NAME, PTR, INDEX, NUMBER, LINES)                                                              \
    WIDE void NAME(const PTR *pointers, int64_t n_ptr, const INDEX *indices, int64_t n_indices, const NUMBER *data,  \
                   int64_t n_data, const NUMBER *B, int64_t rows_B, int64_t width, NUMBER *out, int64_t rows_out,    \
                   int64_t width_out, int64_t first, int64_t last) {                                                 \
        (void)n_ptr, (void)n_indices, (void)n_data, (void)rows_B, (void)rows_out, (void)width_out;                   \
        int64_t end = pointers[last];                                                                                \
        for (int64_t i = first; i < last; i++) {                                                                     \
            int64_t start = pointers[i], stop = pointers[i + 1], c = 0;                                              \
            NUMBER *to = out + i * width;                                                                            \
            WHOLE_LINES(NUMBER, LINES)                                                                               \
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

SPARSE_PRODUCT(sparse_product__f4_i4_i4, int32_t, int32_t, float, lines_f4)
SPARSE_PRODUCT(sparse_product__f4_i8_i4, int64_t, int32_t, float, lines_f4)
SPARSE_PRODUCT(sparse_product__f4_i8_i8, int64_t, int64_t, float, lines_f4)
SPARSE_PRODUCT(sparse_product__f8_i4_i4, int32_t, int32_t, double, lines_f8)
SPARSE_PRODUCT(sparse_product__f8_i8_i4, int64_t, int32_t, double, lines_f8)
SPARSE_PRODUCT(sparse_product__f8_i8_i8, int64_t, int64_t, double, lines_f8)
