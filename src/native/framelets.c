/* Framelet transforms of dense signals in rows; the twins are in pegfan/framelets/_kernels.py.

   Transforms move far more bytes than they compute. Results too large for the caches are written past them (streamed:
   a store that does not first read the line that it overwrites), and rows that come in scattered order are asked for
   some rows ahead. All levels are worked on together, a cluster as soon as its children are there, so that averages
   never leave the fastest cache. */
#include "common.h"
#include "cpu.h"

#define LINE 64
#define AHEAD 8 /* rows */

/* The columns of the table of levels, and an entry of it. */
enum { FIRST, WEIGHTS, FRAMELETS, ROOM, CLUSTERS, COLUMNS };
#define LEVEL(l, what) levels[(l) * COLUMNS + (what)]

/* A row that is read soon, or written. */
#if defined(_MSC_VER)
#define ASK(row, writing)
#else
#define ASK(row, writing)                                                                                            \
    do {                                                                                                             \
        for (int64_t t = 0; t < d; t += LINE / (int64_t)sizeof(T)) __builtin_prefetch((row) + t, writing);           \
        __builtin_prefetch((row) + d - 1, writing);                                                                  \
    } while (0)
#endif

#define CAT(a, b, c) a##_##b##_##c
#define PASTE(a, b, c) CAT(a, b, c)
#define NAME(what) PASTE(what, T, WIDTH)

/* ---------------------------------------------------------------- vectors of 16 bytes, of 32, or none */

#if defined(__GNUC__)
typedef float float16 __attribute__((vector_size(16)));
typedef double double16 __attribute__((vector_size(16)));
typedef float float16_any __attribute__((vector_size(16), aligned(4), may_alias));
typedef double double16_any __attribute__((vector_size(16), aligned(8), may_alias));
#else
typedef float float16, float16_any;
typedef double double16, double16_any;
#endif

#if defined(__GNUC__) && defined(__x86_64__)
#include <immintrin.h>
#define WIDER 1
typedef float float32 __attribute__((vector_size(32)));
typedef double double32 __attribute__((vector_size(32)));
typedef float float32_any __attribute__((vector_size(32), aligned(4), may_alias));
typedef double double32_any __attribute__((vector_size(32), aligned(8), may_alias));
#define FENCE() _mm_sfence()
#else
#define WIDER 0
#define FENCE()
#endif

#define TARGET
#define WIDTH 16

#define T float
#define V float16
#define U float16_any
#if WIDER
#define STREAM(pointer, vector) _mm_stream_ps(pointer, (__m128)(vector))
#else
#define STREAM(pointer, vector) (*(U *)(pointer) = (vector))
#endif
#include "framelets.inc"
#undef T
#undef V
#undef U
#undef STREAM

#define T double
#define V double16
#define U double16_any
#if WIDER
#define STREAM(pointer, vector) _mm_stream_pd(pointer, (__m128d)(vector))
#else
#define STREAM(pointer, vector) (*(U *)(pointer) = (vector))
#endif
#include "framelets.inc"
#undef T
#undef V
#undef U
#undef STREAM
#undef TARGET
#undef WIDTH

#if WIDER
#define TARGET __attribute__((target("avx2")))
#define WIDTH 32

#define T float
#define V float32
#define U float32_any
#define STREAM(pointer, vector) _mm256_stream_ps(pointer, (__m256)(vector))
#include "framelets.inc"
#undef T
#undef V
#undef U
#undef STREAM

#define T double
#define V double32
#define U double32_any
#define STREAM(pointer, vector) _mm256_stream_pd(pointer, (__m256d)(vector))
#include "framelets.inc"
#undef T
#undef V
#undef U
#undef STREAM

/* Streamed vectors must be aligned to their size. */
static int wide(const void *streamed, int64_t streaming) {
    return cpu_has(CPU_AVX2) && !(streaming && (uintptr_t)streamed % 32);
}

#define CALL(what, type, out, ...)                                                                                   \
    do {                                                                                                             \
        if (wide(out, streaming))                                                                                    \
            CAT(what, type, 32)(__VA_ARGS__);                                                                        \
        else                                                                                                         \
            CAT(what, type, 16)(__VA_ARGS__);                                                                        \
        if (streaming) FENCE();                                                                                      \
    } while (0)
#else
#define CALL(what, type, out, ...) CAT(what, type, 16)(__VA_ARGS__)
#endif

/* ---------------------------------------------------------------- what Python calls */

#define DEFINE(SUFFIX, TYPE)                                                                                         \
    void frame_decompose__##SUFFIX(const int64_t *first, int64_t n_first, const TYPE *p, int64_t n_p,                \
                                   const int64_t *levels, int64_t count, int64_t columns, const TYPE *x, int64_t n,  \
                                   int64_t d, const int64_t *rows, int64_t n_rows, TYPE *out, int64_t n_out,         \
                                   int64_t d_out, TYPE *room, int64_t n_room, int64_t d_room, int64_t *at,           \
                                   int64_t n_at, int64_t streaming) {                                                \
        (void)n_first, (void)n_p, (void)columns, (void)n_out, (void)d_out, (void)n_room, (void)d_room, (void)n_at;   \
        CALL(decompose, TYPE, out, first, p, levels, count, x, n, d, n_rows ? rows : NULL, out, room, at,            \
             streaming);                                                                                             \
    }                                                                                                                \
    void frame_reconstruct__##SUFFIX(const int64_t *first, int64_t n_first, const TYPE *p, int64_t n_p,              \
                                     const int64_t *levels, int64_t count, int64_t columns, const TYPE *c,           \
                                     int64_t n_c, int64_t d, TYPE *out, int64_t n, int64_t d_out,                    \
                                     const int64_t *rows, int64_t n_rows, TYPE *room, int64_t n_room,                \
                                     int64_t d_room, int64_t *at,        \
                                     int64_t n_at, int64_t streaming) {                                              \
        (void)n_first, (void)n_p, (void)columns, (void)n_c, (void)d_out, (void)n_room, (void)d_room;        \
        (void)n_at;                                                                      \
        CALL(reconstruct, TYPE, out, first, p, levels, count, c, d, out, n, n_rows ? rows : NULL, room, at,       \
             streaming);                                                                                             \
    }                                                                                                                \
    void frame_average__##SUFFIX(const int64_t *first, int64_t n_first, const TYPE *p, int64_t n_p, const TYPE *x,   \
                                 int64_t n, int64_t d, const int64_t *rows, int64_t n_rows, TYPE *up, int64_t n_up,  \
                                 int64_t d_up) {                                                                     \
        const int64_t streaming = 0;                                                                                 \
        (void)n_p, (void)n_up, (void)d_up;                                                                           \
        CALL(average, TYPE, up, first, n_first - 1, p, x, n, d, n_rows ? rows : NULL, up);                           \
    }                                                                                                                \
    void frame_lift__##SUFFIX(const int64_t *leaf, int64_t n_leaf, const TYPE *weight, int64_t n_weight,             \
                              const TYPE *x, int64_t n_x, int64_t d, TYPE *out, int64_t n, int64_t d_out,            \
                              const int64_t *rows, int64_t n_rows, int64_t streaming) {                              \
        (void)n_weight, (void)n_x, (void)n, (void)d_out;                                                             \
        CALL(lift, TYPE, out, leaf, n_leaf - 1, weight, x, d, out, n_rows ? rows : NULL, streaming);                 \
    }                                                                                                                \
    void frame_detail__##SUFFIX(const int64_t *first, int64_t n_first, const TYPE *p, int64_t n_p,                   \
                                const int64_t *leaf, int64_t n_leaf, const TYPE *weight, int64_t n_weight,           \
                                const TYPE *x, int64_t n, int64_t d, const int64_t *rows_of_x, int64_t n_rows_of_x,  \
                                const TYPE *up, int64_t n_up, int64_t d_up, TYPE *out, int64_t n_out, int64_t d_out, \
                                const int64_t *rows, int64_t n_rows, int64_t streaming) {                            \
        (void)n_p, (void)n_leaf, (void)n_weight, (void)n_up, (void)d_up, (void)n_out, (void)d_out;                   \
        CALL(detail, TYPE, out, first, n_first - 1, p, leaf, weight, x, n, d, n_rows_of_x ? rows_of_x : NULL, up,    \
             out, n_rows ? rows : NULL, streaming);                                                                  \
    }

DEFINE(f4, float)
DEFINE(f8, double)
