/* Dropout and attention over neighbours; the twins are in pegfan/models/_kernels.py. */
#include "common.h"

#define LANES 8 /* partial sums of a dot product */
#define AHEAD 4 /* neighbours whose rows are asked for before they are needed */

#define DEFINE(SUFFIX, T, EXP)                                                                                       \
    WIDE void model_drop__##SUFFIX(const T *x, int64_t n, const uint8_t *mask, int64_t n_mask, double scale, T *out, \
                                   int64_t n_out) {                                                                  \
        const T own = (T)scale;                                                                                      \
        (void)n_mask, (void)n_out;                                                                                   \
        for (int64_t i = 0; i < n; i++) out[i] = x[i] * ((T)mask[i] * own);                                          \
    }                                                                                                                \
    WIDE void model_relu_drop__##SUFFIX(const T *x, int64_t n, const uint8_t *mask, int64_t n_mask, double scale,    \
                                        T *out, int64_t n_out) {                                                     \
        const T own = (T)scale;                                                                                      \
        (void)n_mask, (void)n_out;                                                                                   \
        for (int64_t i = 0; i < n; i++) out[i] = (x[i] < 0 ? 0 : x[i]) * ((T)mask[i] * own);                         \
    }                                                                                                                \
    WIDE void model_relu_drop_back__##SUFFIX(const T *gradient, int64_t n, const T *y, int64_t n_y, double scale,    \
                                             T *out, int64_t n_out) {                                                \
        const T own = (T)scale;                                                                                      \
        (void)n_y, (void)n_out;                                                                                      \
        for (int64_t i = 0; i < n; i++) out[i] = y[i] > 0 ? gradient[i] * own : 0;                                   \
    }                                                                                                                \
    void model_unit_rows__##SUFFIX(const int64_t *pointers, int64_t n_pointers, const T *data, int64_t n_data,       \
                                   T *out, int64_t n_out) {                                                          \
        (void)n_data, (void)n_out;                                                                                   \
        for (int64_t i = 0; i + 1 < n_pointers; i++) {                                                               \
            double total = 0;                                                                                        \
            for (int64_t e = pointers[i]; e < pointers[i + 1]; e++) total += (double)data[e] * (double)data[e];      \
            const T norm = total > 0 ? (T)sqrt(total) : 1;                                                           \
            for (int64_t e = pointers[i]; e < pointers[i + 1]; e++) out[e] = data[e] / norm;                         \
        }                                                                                                            \
    }                                                                                                                \
    WIDE void model_attention__##SUFFIX(                                                                             \
        const int64_t *pointers, int64_t n_pointers, const int32_t *indices, int64_t n_indices, const T *source,     \
        int64_t n_source, int64_t heads, const T *target, int64_t n_target, int64_t d_target, double slope,          \
        T *weights, int64_t n_weights, int64_t d_weights, T *room, int64_t two, int64_t d_room) {                    \
        const T own = (T)slope;                                                                                      \
        T *top = room, *total = room + heads;                                                                        \
        (void)n_indices, (void)n_source, (void)n_target, (void)d_target, (void)n_weights, (void)d_weights;           \
        (void)two, (void)d_room;                                                                                     \
        for (int64_t i = 0; i + 1 < n_pointers; i++) {                                                               \
            const int64_t start = pointers[i], stop = pointers[i + 1];                                               \
            for (int64_t k = 0; k < heads; k++) top[k] = -(T)INFINITY, total[k] = 0;                                 \
            for (int64_t e = start; e < stop; e++)                                                                   \
                for (int64_t k = 0; k < heads; k++) {                                                                \
                    T s = source[indices[e] * heads + k] + target[i * heads + k];                                    \
                    s = s > 0 ? s : own * s;                                                                         \
                    weights[e * heads + k] = s;                                                                      \
                    top[k] = s > top[k] ? s : top[k];                                                                \
                }                                                                                                    \
            for (int64_t e = start; e < stop; e++)                                                                   \
                for (int64_t k = 0; k < heads; k++) {                                                                \
                    const T value = EXP(weights[e * heads + k] - top[k]);                                            \
                    weights[e * heads + k] = value;                                                                  \
                    total[k] += value;                                                                               \
                }                                                                                                    \
            for (int64_t e = start; e < stop; e++)                                                                   \
                for (int64_t k = 0; k < heads; k++) weights[e * heads + k] /= total[k];                              \
        }                                                                                                            \
    }                                                                                                                \
    WIDE void model_attend__##SUFFIX(const int64_t *pointers, int64_t n_pointers, const int32_t *indices,            \
                                     int64_t n_indices, const T *weights, int64_t n_weights, int64_t d_weights,      \
                                     const T *factors, int64_t n_factors, int64_t d_factors, const T *z, int64_t n,  \
                                     int64_t heads, int64_t width, T *out, int64_t n_out, int64_t h_out,             \
                                     int64_t w_out) {                                                                \
        const int64_t d = heads * width;                                                                             \
        (void)n_weights, (void)d_weights, (void)n_factors, (void)n, (void)n_out, (void)h_out, (void)w_out;           \
        for (int64_t i = 0; i + 1 < n_pointers; i++) {                                                               \
            for (int64_t t = 0; t < d; t++) out[i * d + t] = 0;                                                      \
            for (int64_t e = pointers[i]; e < pointers[i + 1]; e++) {                                                \
                if (e + AHEAD < n_indices)                                                                           \
                    for (int64_t t = 0; t < d; t += 64 / (int64_t)sizeof(T)) PREFETCH(z + indices[e + AHEAD] * d + t);\
                for (int64_t k = 0; k < heads; k++) {                                                                \
                    const T a = weights[e * heads + k] * factors[d_factors == 1 ? e : e * heads + k];                \
                    const T *restrict from = z + indices[e] * d + k * width;                                         \
                    T *restrict to = out + i * d + k * width;                                                        \
                    for (int64_t t = 0; t < width; t++) to[t] += a * from[t];                                        \
                }                                                                                                    \
            }                                                                                                        \
        }                                                                                                            \
    }                                                                                                                \
    WIDE void model_attend_back__##SUFFIX(                                                                           \
        const int64_t *pointers, int64_t n_pointers, const int32_t *indices, int64_t n_indices, const T *source,     \
        int64_t n_source, int64_t d_source, const T *target, int64_t n_target, int64_t d_target, double slope,       \
        const T *weights, int64_t n_weights, int64_t d_weights, const T *factors, int64_t n_factors,                 \
        int64_t d_factors, const T *z, int64_t n, int64_t heads, int64_t width, const T *gradient,                   \
        int64_t n_gradient, int64_t h_gradient, int64_t w_gradient, T *by_z, int64_t n_by_z, int64_t h_by_z,         \
        int64_t w_by_z, T *by_source, int64_t n_by_source, int64_t d_by_source, T *by_target, int64_t n_by_target,   \
        int64_t d_by_target, T *room, int64_t n_room, int64_t d_room) {                                              \
        const int64_t d = heads * width;                                                                             \
        const T own = (T)slope;                                                                                      \
        T *mean = room, *by_weight = room + heads;                                                                   \
        (void)n_source, (void)d_source, (void)n_target, (void)d_target, (void)n_weights, (void)d_weights;            \
        (void)n_factors, (void)n, (void)n_gradient, (void)h_gradient, (void)w_gradient, (void)n_by_z, (void)h_by_z;  \
        (void)w_by_z, (void)n_by_source, (void)d_by_source, (void)n_by_target, (void)d_by_target, (void)n_room;      \
        (void)d_room;                                                                                                \
        for (int64_t i = 0; i + 1 < n_pointers; i++) {                                                               \
            const int64_t start = pointers[i], stop = pointers[i + 1];                                               \
            for (int64_t k = 0; k < heads; k++) mean[k] = 0;                                                         \
            for (int64_t e = start; e < stop; e++) {                                                                 \
                if (e + AHEAD < n_indices)                                                                           \
                    for (int64_t t = 0; t < d; t += 64 / (int64_t)sizeof(T)) {                                       \
                        PREFETCH(z + indices[e + AHEAD] * d + t);                                                    \
                        PREFETCH(by_z + indices[e + AHEAD] * d + t);                                                 \
                    }                                                                                                \
                for (int64_t k = 0; k < heads; k++) {                                                                \
                    const T factor = factors[d_factors == 1 ? e : e * heads + k];                                    \
                    const T a = weights[e * heads + k] * factor;                                                     \
                    const T *restrict g = gradient + i * d + k * width;                                              \
                    const T *restrict from = z + indices[e] * d + k * width;                                         \
                    T *restrict to = by_z + indices[e] * d + k * width;                                              \
                    T part[LANES] = {0};                                                                             \
                    int64_t t = 0;                                                                                   \
                    for (; t + LANES <= width; t += LANES)                                                           \
                        for (int q = 0; q < LANES; q++) {                                                            \
                            part[q] += g[t + q] * from[t + q];                                                       \
                            to[t + q] += a * g[t + q];                                                               \
                        }                                                                                            \
                    for (int q = 0; t + q < width; q++) {                                                            \
                        part[q] += g[t + q] * from[t + q];                                                           \
                        to[t + q] += a * g[t + q];                                                                   \
                    }                                                                                                \
                    const T dot = (((part[0] + part[1]) + (part[2] + part[3])) +                                     \
                                   ((part[4] + part[5]) + (part[6] + part[7]))) *                                    \
                                  factor;                                                                            \
                    by_weight[(e - start) * heads + k] = dot;                                                        \
                    mean[k] += weights[e * heads + k] * dot;                                                         \
                }                                                                                                    \
            }                                                                                                        \
            for (int64_t e = start; e < stop; e++)                                                                   \
                for (int64_t k = 0; k < heads; k++) {                                                                \
                    const int64_t j = indices[e] * heads + k;                                                        \
                    T s = weights[e * heads + k] * (by_weight[(e - start) * heads + k] - mean[k]);                   \
                    if (source[j] + target[i * heads + k] <= 0) s *= own;                                            \
                    by_source[j] += s;                                                                               \
                    by_target[i * heads + k] += s;                                                                   \
                }                                                                                                    \
        }                                                                                                            \
    }

DEFINE(f4, float, expf)
DEFINE(f8, double, exp)
