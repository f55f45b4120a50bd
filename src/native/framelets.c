/* Framelet transforms of dense signals in rows; their declarations are in pegfan/framelets/_kernels.py.

   Transforms move far more bytes than they compute. Results too large for the caches are written past them (streamed:
   a store that does not first read the line that it overwrites), and rows that come in scattered order are asked for
   some rows ahead. All levels are worked on together, a cluster as soon as its children are there, so that averages
   never leave the fastest cache. */
#include "common.h"
#include "cpu.h"

#define JOIN_NAMES(a, b) a##_##b
#define JOIN(a, b) JOIN_NAMES(a, b)

enum { CACHE_LINE = 64, ROWS_AHEAD = 8 };

/* A row of the table of levels, the finest level first: where its offsets start in `first`, its weights in `p`, its
   framelet coefficients among all, its children in `room`; and how many clusters it has. */
typedef struct {
    int64_t first, weights, framelets, room, clusters;
} level;

/* ---------------------------------------------------------------- vectors of 16 bytes, of 32, or none */

#if defined(__GNUC__) && defined(__x86_64__)
#include <immintrin.h>

/* Streamed vectors must be aligned to their size. */
static int wide(const void *streamed, int64_t streaming) {
    return cpu_has(CPU_AVX2) && !(streaming && (uintptr_t)streamed % 32);
}

/* Streamed stores are there for whoever reads next. */
static void finish(int64_t streaming) {
    if (streaming) _mm_sfence();
}

#define TARGET __attribute__((target("avx2")))
#define KIND f4_32
#define T float
#define V __m256
#define UNALIGNED __m256_u
#define STREAM _mm256_stream_ps
#include "framelets.inc"

#define TARGET __attribute__((target("avx2")))
#define KIND f8_32
#define T double
#define V __m256d
#define UNALIGNED __m256d_u
#define STREAM _mm256_stream_pd
#include "framelets.inc"

#define TARGET
#define KIND f4_16
#define T float
#define V __m128
#define UNALIGNED __m128_u
#define STREAM _mm_stream_ps
#include "framelets.inc"

#define TARGET
#define KIND f8_16
#define T double
#define V __m128d
#define UNALIGNED __m128d_u
#define STREAM _mm_stream_pd
#include "framelets.inc"

#define CHOOSE(what, out, streaming) (wide(out, streaming) ? JOIN(what, WIDE_KIND) : JOIN(what, KIND))

#else /* elsewhere rows are stored through the caches, streamed or not */
#if defined(__GNUC__)
typedef float float16 __attribute__((vector_size(16)));
typedef double double16 __attribute__((vector_size(16)));
typedef float float16_any __attribute__((vector_size(16), aligned(4), may_alias));
typedef double double16_any __attribute__((vector_size(16), aligned(8), may_alias));
#else
typedef float float16, float16_any;
typedef double double16, double16_any;
#endif

static inline void store_floats(float *row, float16 x) { *(float16_any *)row = x; }
static inline void store_doubles(double *row, double16 x) { *(double16_any *)row = x; }
static inline void finish(int64_t streaming) { (void)streaming; }

#define TARGET
#define KIND f4_16
#define T float
#define V float16
#define UNALIGNED float16_any
#define STREAM store_floats
#include "framelets.inc"

#define TARGET
#define KIND f8_16
#define T double
#define V double16
#define UNALIGNED double16_any
#define STREAM store_doubles
#include "framelets.inc"

#define CHOOSE(what, out, streaming) JOIN(what, KIND)
#endif

/* ---------------------------------------------------------------- what Python calls */

#define SUFFIX f4
#define KIND f4_16
#define WIDE_KIND f4_32
#define T float
#include "framelets_calls.inc"

#define SUFFIX f8
#define KIND f8_16
#define WIDE_KIND f8_32
#define T double
#include "framelets_calls.inc"
