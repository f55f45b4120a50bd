/* Linear algebra of the tree builders; its declarations are in pegfan/trees/_linear.py. Every sum has a fixed order; loops
   over columns may be vectorised, which changes no sum. */
#include "common.h"

#define EPS 0x1p-52

WIDE int64_t add_outer(const double *scale, int64_t n, double factor, const double *x, int64_t width, double *out) {
    double *total = calloc((size_t)width + 1, sizeof(double));
    if (!total) return -1;
    for (int64_t i = 0; i < n; i++)
        for (int64_t t = 0; t < width; t++) total[t] += scale[i] * x[i * width + t];
    for (int64_t i = 0; i < n; i++) {
        const double share = factor * scale[i];
        for (int64_t t = 0; t < width; t++) out[i * width + t] += share * total[t];
    }
    free(total);
    return 0;
}

WIDE void combine(double a, const double *ax, int64_t n, int64_t width, double b, const double *x, double c,
                  const double *before, double *restrict out) {
    for (int64_t k = 0; k < n * width; k++) out[k] = a * ax[k] + b * x[k] + c * before[k];
}

WIDE void gram(const double *restrict x, int64_t n, int64_t width, const double *restrict y, double *restrict out) {
    int64_t i = 0;
    for (int64_t k = 0; k < width * width; k++) out[k] = 0.0;
    for (; i + 4 <= n; i += 4) {
        const double *p = x + i * width, *q = y + i * width, *r = q + width, *u = r + width, *v = u + width;
        for (int64_t s = 0; s < width; s++) {
            const double a = p[s], b = p[width + s], c = p[2 * width + s], d = p[3 * width + s];
            double *restrict row = out + s * width;
            for (int64_t t = s; t < width; t++) row[t] = row[t] + a * q[t] + b * r[t] + c * u[t] + d * v[t];
        }
    }
    for (; i < n; i++)
        for (int64_t s = 0; s < width; s++)
            for (int64_t t = s; t < width; t++) out[s * width + t] += x[i * width + s] * y[i * width + t];
    for (int64_t s = 0; s < width; s++)
        for (int64_t t = 0; t < s; t++) out[s * width + t] = out[t * width + s];
}

WIDE void rotate(const double *restrict x, int64_t n, int64_t rows, const double *restrict m, int64_t width,
                 double *restrict out) {
    for (int64_t i = 0; i < n; i++) {
        double *restrict total = out + i * width;
        const double *from = x + i * rows;
        int64_t s = 0;
        for (int64_t t = 0; t < width; t++) total[t] = 0.0;
        for (; s + 4 <= rows; s += 4) {
            const double a = from[s], b = from[s + 1], c = from[s + 2], d = from[s + 3];
            const double *p = m + s * width, *q = p + width, *r = q + width, *u = r + width;
            for (int64_t t = 0; t < width; t++) total[t] = total[t] + a * p[t] + b * q[t] + c * r[t] + d * u[t];
        }
        for (; s < rows; s++)
            for (int64_t t = 0; t < width; t++) total[t] += from[s] * m[s * width + t];
    }
}

#define INDEX int32_t
#define NAME row_sums__i4
#include "row_sums.inc"
#define INDEX int64_t
#define NAME row_sums__i8
#include "row_sums.inc"

void scale_rows(double *x, int64_t n, int64_t width) {
    for (int64_t i = 0; i < n; i++) {
        double *row = x + i * width, total = 0.0;
        for (int64_t t = 0; t < width; t++) total += row[t] * row[t];
        if (!(total > 0.0)) continue;
        const double norm = sqrt(total);
        for (int64_t t = 0; t < width; t++) row[t] /= norm;
    }
}

WIDE void column_norms(const double *restrict x, int64_t n, int64_t width, double *restrict out) {
    for (int64_t t = 0; t < width; t++) out[t] = 0.0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t t = 0; t < width; t++) out[t] += x[i * width + t] * x[i * width + t];
    for (int64_t t = 0; t < width; t++) out[t] = sqrt(out[t]);
}

void fill(double *x, int64_t n, int64_t width, int64_t salt, const uint8_t *only) {
    const uint64_t start = mix((uint64_t)salt);
    for (int64_t i = 0; i < n; i++)
        for (int64_t t = 0; t < width; t++)
            if (only[t]) x[i * width + t] = (double)(mix(start + (uint64_t)(i * width + t)) >> 12) * 0x1p-51 - 1.0;
}

int64_t orthonormal(const double *g, int64_t w, double *r, uint8_t *lost) {
    double *low = calloc((size_t)(w * w) + 1, sizeof(double));
    int64_t count = 0;
    if (!low) return -1;
    for (int64_t k = 0; k < w * w; k++) r[k] = 0.0;
    for (int64_t j = 0; j < w; j++) {
        double rest = g[j * w + j];
        for (int64_t k = 0; k < j; k++) rest -= low[j * w + k] * low[j * w + k];
        lost[j] = !(rest > 1e-12 * g[j * w + j]);
        if (lost[j]) {
            count++;
            continue;
        }
        low[j * w + j] = sqrt(rest);
        for (int64_t i = j + 1; i < w; i++) {
            double value = g[i * w + j];
            for (int64_t k = 0; k < j; k++) value -= low[i * w + k] * low[j * w + k];
            low[i * w + j] = value / low[j * w + j];
        }
    }
    for (int64_t j = 0; j < w; j++) {
        if (lost[j]) continue;
        r[j * w + j] = 1.0 / low[j * w + j];
        for (int64_t i = j - 1; i >= 0; i--) {
            if (lost[i]) continue;
            double total = 0.0;
            for (int64_t k = i + 1; k <= j; k++) total += low[k * w + i] * r[k * w + j];
            r[i * w + j] = -total / low[i * w + i];
        }
    }
    free(low);
    return count;
}

/* T = Q^T q Q of three diagonals, the middle one and beside[i] = T[i, i + 1]; Q takes the place of q. */
static void three_diagonals(double *q, double *a, double *v, double *p, int64_t n, double *diagonal, double *beside) {
    memcpy(a, q, (size_t)(n * n) * sizeof(double));
    for (int64_t k = 0; k < n * n; k++) q[k] = 0.0;
    for (int64_t i = 0; i < n; i++) q[i * n + i] = 1.0;
    for (int64_t k = 0; k < n - 2; k++) {
        double size = 0.0, inner = 0.0;
        for (int64_t i = k + 1; i < n; i++) size += a[i * n + k] * a[i * n + k];
        const double next = a[(k + 1) * n + k], rest = size - next * next;
        if (!(rest > EPS * EPS * size)) continue;
        const double pivot = next >= 0.0 ? -sqrt(size) : sqrt(size);
        for (int64_t i = k + 1; i < n; i++) v[i] = a[i * n + k];
        v[k + 1] -= pivot;
        const double half = size - pivot * next; /* v^T v / 2: the reflection is I - v v^T / half */
        for (int64_t i = k + 1; i < n; i++) {
            double total = 0.0;
            for (int64_t j = k + 1; j < n; j++) total += a[i * n + j] * v[j];
            p[i] = total / half;
            inner += v[i] * p[i];
        }
        const double shift = inner / (half + half);
        for (int64_t i = k + 1; i < n; i++) p[i] -= shift * v[i];
        for (int64_t i = k + 1; i < n; i++)
            for (int64_t j = k + 1; j < n; j++) a[i * n + j] -= v[i] * p[j] + p[i] * v[j];
        a[(k + 1) * n + k] = a[k * n + k + 1] = pivot;
        for (int64_t i = 0; i < n; i++) {
            double total = 0.0;
            for (int64_t j = k + 1; j < n; j++) total += q[i * n + j] * v[j];
            total /= half;
            for (int64_t j = k + 1; j < n; j++) q[i * n + j] -= total * v[j];
        }
    }
    for (int64_t i = 0; i < n; i++) {
        diagonal[i] = a[i * n + i];
        beside[i] = i + 1 < n ? a[(i + 1) * n + i] : 0.0;
    }
}

/* One round of QL on the rows first to last of three diagonals: rotations from below, by Wilkinson's shift. */
static void shifted_rotations(double *d, double *e, double *q, int64_t n, int64_t first, int64_t last) {
    const double gap = (d[first + 1] - d[first]) / (2.0 * e[first]), root = sqrt(gap * gap + 1.0);
    double g = d[last] - d[first] + e[first] / (gap + (gap >= 0.0 ? root : -root));
    double sine = 1.0, cosine = 1.0, moved = 0.0;
    for (int64_t i = last - 1; i >= first; i--) {
        const double f = sine * e[i], b = cosine * e[i], length = sqrt(f * f + g * g);
        e[i + 1] = length;
        if (length == 0.0) { /* it falls apart here */
            d[i + 1] -= moved;
            e[last] = 0.0;
            return;
        }
        sine = f / length, cosine = g / length;
        g = d[i + 1] - moved;
        const double mixed = (d[i] - g) * sine + 2.0 * cosine * b;
        moved = sine * mixed;
        d[i + 1] = g + moved;
        g = cosine * mixed - b;
        for (int64_t k = 0; k < n; k++) {
            const double x = q[k * n + i], y = q[k * n + i + 1];
            q[k * n + i + 1] = sine * x + cosine * y;
            q[k * n + i] = cosine * x - sine * y;
        }
    }
    d[first] -= moved;
    e[first] = g;
    e[last] = 0.0;
}

int64_t symmetric_eigen(const double *a, int64_t n, double *values, double *vectors) {
    double *q = vectors, *room = malloc((size_t)(n * n + 3 * n) * sizeof(double) + 1), *beside = room + n * n;
    if (!room) return -1;
    memcpy(q, a, (size_t)(n * n) * sizeof(double));
    three_diagonals(q, room, beside + n, beside + 2 * n, n, values, beside);
    for (int64_t first = 0; first < n; first++)
        for (int round = 0; round < 100; round++) { /* two or three rounds do */
            int64_t last = first;
            while (last < n - 1 && fabs(beside[last]) > EPS * (fabs(values[last]) + fabs(values[last + 1]))) last++;
            if (last == first) break;
            shifted_rotations(values, beside, q, n, first, last);
        }
    for (int64_t i = 0; i < n - 1; i++) {
        int64_t best = i;
        for (int64_t j = i + 1; j < n; j++)
            if (values[j] > values[best]) best = j;
        const double value = values[i];
        values[i] = values[best], values[best] = value;
        for (int64_t k = 0; k < n; k++) {
            const double x = q[k * n + i];
            q[k * n + i] = q[k * n + best], q[k * n + best] = x;
        }
    }
    free(room);
    return 0;
}
