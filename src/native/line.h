/* Sixteen float32, a cache line, as the processor likes them; a file that includes this says for which one.
   Sums inside a line are taken in one fixed order, and all but the portable lines round a product and its sum once, so
   that AVX2, AVX-512 and NEON give the same bits. */

#if defined(LINE_AVX512)

typedef __m512 line;
ALWAYS_INLINE line line_load(const float *p) { return _mm512_loadu_ps(p); }
ALWAYS_INLINE void line_store(float *p, line x) { _mm512_storeu_ps(p, x); }
ALWAYS_INLINE line line_set(float x) { return _mm512_set1_ps(x); }
ALWAYS_INLINE line line_add(line x, line y) { return _mm512_add_ps(x, y); }
ALWAYS_INLINE line line_sub(line x, line y) { return _mm512_sub_ps(x, y); }
ALWAYS_INLINE line line_mul(line x, line y) { return _mm512_mul_ps(x, y); }
ALWAYS_INLINE line line_div(line x, line y) { return _mm512_div_ps(x, y); }
ALWAYS_INLINE line line_sqrt(line x) { return _mm512_sqrt_ps(x); }
ALWAYS_INLINE line line_fma(line x, line y, line z) { return _mm512_fmadd_ps(x, y, z); }
ALWAYS_INLINE line line_gate(line x, line h, uint32_t bits) {
    return _mm512_maskz_mov_ps(_mm512_mask_cmp_ps_mask((__mmask16)bits, h, _mm512_setzero_ps(), _CMP_GT_OQ), x);
}
ALWAYS_INLINE float line_sum(line x) {
    __m256 a = _mm512_castps512_ps256(x);
    __m256 b = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1));
    __m256 c = _mm256_add_ps(a, b);
    __m128 d = _mm_add_ps(_mm256_castps256_ps128(c), _mm256_extractf128_ps(c, 1));
    d = _mm_add_ps(d, _mm_movehl_ps(d, d));
    return _mm_cvtss_f32(_mm_add_ss(d, _mm_shuffle_ps(d, d, 1)));
}

#elif defined(LINE_AVX2)

typedef struct {
    __m256 a, b;
} line;
ALWAYS_INLINE line line_load(const float *p) { return (line){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
ALWAYS_INLINE void line_store(float *p, line x) { _mm256_storeu_ps(p, x.a), _mm256_storeu_ps(p + 8, x.b); }
ALWAYS_INLINE line line_set(float x) { return (line){_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
ALWAYS_INLINE line line_add(line x, line y) { return (line){_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
ALWAYS_INLINE line line_sub(line x, line y) { return (line){_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
ALWAYS_INLINE line line_mul(line x, line y) { return (line){_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
ALWAYS_INLINE line line_div(line x, line y) { return (line){_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
ALWAYS_INLINE line line_sqrt(line x) { return (line){_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)}; }
ALWAYS_INLINE line line_fma(line x, line y, line z) {
    return (line){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
ALWAYS_INLINE __m256 half_gate(__m256 x, __m256 h, __m256i bits, __m256i lanes) {
    __m256 kept = _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(bits, lanes), lanes));
    kept = _mm256_and_ps(kept, _mm256_cmp_ps(h, _mm256_setzero_ps(), _CMP_GT_OQ));
    return _mm256_and_ps(x, kept);
}
ALWAYS_INLINE line line_gate(line x, line h, uint32_t bits) {
    __m256i all = _mm256_set1_epi32((int)bits), lanes = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return (line){half_gate(x.a, h.a, all, lanes), half_gate(x.b, h.b, all, _mm256_slli_epi32(lanes, 8))};
}
ALWAYS_INLINE float line_sum(line x) {
    __m256 c = _mm256_add_ps(x.a, x.b);
    __m128 d = _mm_add_ps(_mm256_castps256_ps128(c), _mm256_extractf128_ps(c, 1));
    d = _mm_add_ps(d, _mm_movehl_ps(d, d));
    return _mm_cvtss_f32(_mm_add_ss(d, _mm_shuffle_ps(d, d, 1)));
}

#else

typedef struct {
    float v[16];
} line;
ALWAYS_INLINE line line_load(const float *p) {
    line out;
    memcpy(out.v, p, sizeof out.v);
    return out;
}
ALWAYS_INLINE void line_store(float *p, line x) { memcpy(p, x.v, sizeof x.v); }
ALWAYS_INLINE line line_set(float x) {
    line out;
    for (int j = 0; j < 16; j++) out.v[j] = x;
    return out;
}
ALWAYS_INLINE line line_add(line x, line y) {
    for (int j = 0; j < 16; j++) x.v[j] += y.v[j];
    return x;
}
ALWAYS_INLINE line line_sub(line x, line y) {
    for (int j = 0; j < 16; j++) x.v[j] -= y.v[j];
    return x;
}
ALWAYS_INLINE line line_mul(line x, line y) {
    for (int j = 0; j < 16; j++) x.v[j] *= y.v[j];
    return x;
}
ALWAYS_INLINE line line_div(line x, line y) {
    for (int j = 0; j < 16; j++) x.v[j] /= y.v[j];
    return x;
}
ALWAYS_INLINE line line_sqrt(line x) {
    for (int j = 0; j < 16; j++) x.v[j] = sqrtf(x.v[j]);
    return x;
}
ALWAYS_INLINE line line_fma(line x, line y, line z) {
#if defined(__aarch64__)
    for (int j = 0; j < 16; j++) z.v[j] = __builtin_fmaf(x.v[j], y.v[j], z.v[j]);
#else
    for (int j = 0; j < 16; j++) z.v[j] = x.v[j] * y.v[j] + z.v[j];
#endif
    return z;
}
ALWAYS_INLINE line line_gate(line x, line h, uint32_t bits) {
    for (int j = 0; j < 16; j++) x.v[j] = (bits >> j & 1) && h.v[j] > 0 ? x.v[j] : 0.0f;
    return x;
}
ALWAYS_INLINE float line_sum(line x) {
    for (int half = 8; half; half /= 2)
        for (int j = 0; j < half; j++) x.v[j] += x.v[j + half];
    return x.v[0];
}

#endif
