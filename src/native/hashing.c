/* Hashes of 64 bits; their declarations are in pegfan/_hashing.py. */
#include "common.h"

static const uint64_t COLUMN = UINT64_C(0x94D049BB133111EB);

WIDE void mix_all(const uint64_t *values, int64_t n, uint64_t *out) {
    for (int64_t i = 0; i < n; i++) out[i] = mix(values[i]);
}

void fold_words(const uint64_t *words, int64_t n, uint64_t *lanes) {
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

#define PTR int32_t
#define INDEX int32_t
#define NAME hash_rows__i4_i4
#include "hash_rows.inc"
#define PTR int32_t
#define INDEX int64_t
#define NAME hash_rows__i4_i8
#include "hash_rows.inc"
#define PTR int64_t
#define INDEX int32_t
#define NAME hash_rows__i8_i4
#include "hash_rows.inc"
#define PTR int64_t
#define INDEX int64_t
#define NAME hash_rows__i8_i8
#include "hash_rows.inc"

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

/* A number of a row, added to the hash of the row; zeros are no entries. */
ALWAYS_INLINE uint64_t add_number(uint64_t total, double value, int64_t column) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value != 0.0 ? total + mix(bits ^ mix((uint64_t)column + COLUMN)) : total;
}

void hash_dense_rows__f4(const float *x, int64_t n, int64_t d, uint64_t *out) {
    for (int64_t i = 0; i < n; i++) {
        uint64_t total = 0;
        for (int64_t t = 0; t < d; t++) total = add_number(total, (double)x[i * d + t], t);
        out[i] = mix(total);
    }
}

void hash_dense_rows__f8(const double *x, int64_t n, int64_t d, uint64_t *out) {
    for (int64_t i = 0; i < n; i++) {
        uint64_t total = 0;
        for (int64_t t = 0; t < d; t++) total = add_number(total, x[i * d + t], t);
        out[i] = mix(total);
    }
}
