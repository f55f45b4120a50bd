/* Hashes of 64 bits; the twins are in pegfan/_hashing.py. */
#include "common.h"

static const uint64_t COLUMN = UINT64_C(0x94D049BB133111EB);

WIDE void mix_all(const uint64_t *values, int64_t n, uint64_t *out, int64_t n_out) {
    (void)n_out;
    for (int64_t i = 0; i < n; i++) out[i] = mix(values[i]);
}

void fold_words(const uint64_t *words, int64_t n, uint64_t *lanes, int64_t eight) {
    (void)eight;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int64_t k = 0; k < 8; k++) {
            const uint64_t lane = (lanes[k] ^ words[i + k]) * UINT64_C(0xBF58476D1CE4E5B9);
            lanes[k] = lane ^ (lane >> 32);
        }
    for (; i < n; i++) {
        const uint64_t lane = (lanes[i & 7] ^ words[i]) * UINT64_C(0xBF58476D1CE4E5B9);
        lanes[i & 7] = lane ^ (lane >> 32);
    }
}

#define HASH_ROWS(NAME, PTR, INDEX)                                                                                  \
    void NAME(const PTR *indptr, int64_t n_ptr, const INDEX *indices, int64_t n_indices, const uint64_t *bits,       \
              int64_t n_bits, int64_t with_self, uint64_t *out, int64_t n_out) {                                     \
        (void)n_indices, (void)n_bits, (void)n_out;                                                                  \
        for (int64_t i = 0; i + 1 < n_ptr; i++) {                                                                    \
            uint64_t total = 0;                                                                                      \
            for (int64_t e = indptr[i]; e < indptr[i + 1]; e++)                                                      \
                total += mix(bits[e] ^ mix((uint64_t)indices[e] + COLUMN));                                          \
            if (with_self && indptr[i] < indptr[i + 1]) total += mix(bits[indptr[i]] ^ mix((uint64_t)i + COLUMN));   \
            out[i] = mix(total);                                                                                     \
        }                                                                                                            \
    }

HASH_ROWS(hash_rows__i4_i4, int32_t, int32_t)
HASH_ROWS(hash_rows__i8_i8, int64_t, int64_t)
HASH_ROWS(hash_rows__i8_i4, int64_t, int32_t)

/* mask = 1 where 16 random bits are at least the threshold: the entries that dropout keeps. */
void keep_entries(uint64_t seed, uint64_t threshold, uint8_t *mask, int64_t n) {
    seed += UINT64_C(0x9E3779B97F4A7C15);
    int half = threshold == 32768; /* then every bit serves */
    int64_t each = half ? 64 : 4;
    for (int64_t start = 0; start < n; start += each) {
        uint64_t bits = mix(seed + (uint64_t)(start / each));
        int64_t count = n - start < each ? n - start : each;
        for (int64_t k = 0; k < count; k++)
            mask[start + k] = half ? bits >> k & 1 : (bits >> 16 * k & 0xFFFF) >= threshold;
    }
}
#define HASH_DENSE_ROWS(NAME, VALUE)                                                                                 \
    void NAME(const VALUE *x, int64_t n, int64_t width, uint64_t *out, int64_t n_out) {                              \
        (void)n_out;                                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                                            \
            uint64_t total = 0, bits;                                                                                \
            for (int64_t t = 0; t < width; t++) {                                                                    \
                const double value = (double)x[i * width + t];                                                       \
                memcpy(&bits, &value, sizeof bits);                                                                  \
                if (value != 0.0) total += mix(bits ^ mix((uint64_t)t + COLUMN));                                    \
            }                                                                                                        \
            out[i] = mix(total);                                                                                     \
        }                                                                                                            \
    }

HASH_DENSE_ROWS(hash_dense_rows__f4, float)
HASH_DENSE_ROWS(hash_dense_rows__f8, double)
