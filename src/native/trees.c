/* Loops of the tree builders; their declarations are in pegfan/trees/_kernels.py. */
#include "common.h"

/* Entries ahead whose lines are asked for: enough of them on their way to hide that memory is far. */
#define AHEAD 32

#if defined(_MSC_VER)
#include <intrin.h>
ALWAYS_INLINE int64_t lowest_bit(uint64_t bits) {
    unsigned long place;
    _BitScanForward64(&place, bits);
    return (int64_t)place;
}
#else
ALWAYS_INLINE int64_t lowest_bit(uint64_t bits) { return __builtin_ctzll(bits); }
#endif

/* The logarithm to base 2, straight between powers of 2. */
ALWAYS_INLINE double height(double score) {
    uint64_t bits;
    if (!(score > 1e-300)) score = 1e-300;
    memcpy(&bits, &score, sizeof bits);
    const double exponent = (double)((int64_t)(bits >> 52) - 1022);
    bits = (bits & UINT64_C(0xFFFFFFFFFFFFF)) | UINT64_C(1023) << 52;
    memcpy(&score, &bits, sizeof bits);
    return exponent + score;
}

ALWAYS_INLINE int64_t to_16_bits(double value) { return (int64_t)llrint(value) & 0xFFFF; }

#define INDEX int32_t
#define NAME(function) function##__i4
#include "trees.inc"
#undef INDEX
#undef NAME

#define INDEX int64_t
#define NAME(function) function##__i8
#include "trees.inc"
#undef INDEX
#undef NAME

void height_range(const double *score, int64_t n, double *out) {
    double low = INFINITY, high = -INFINITY;
    for (int64_t e = 0; e < n; e++) {
        const double value = height(score[e]);
        low = value < low ? value : low, high = value > high ? value : high;
    }
    out[0] = low, out[1] = high;
}

void score_keys(const double *score, int64_t n, double low, double high, uint16_t *keys) {
    const double gap = high - low, scale = 65535.0 / (gap > 1e-12 ? gap : 1e-12);
    for (int64_t e = 0; e < n; e++) keys[e] = (uint16_t)to_16_bits((high - height(score[e])) * scale);
}

void leading_bits(const double *weights, int64_t n, double largest, uint64_t *out) {
    for (int64_t e = 0; e < n; e++) {
        const double value = weights[e] / largest;
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        if ((bits >> 52 & 0x7FF) - 1 < 0x7FD) { /* neither zero nor tiny: 13 bits of the fraction are rounded away */
            bits += 0xFFF + (bits >> 13 & 1);
            out[e] = bits & ~UINT64_C(0x1FFF);
        } else {
            int exponent;
            const double mantissa = frexp(value, &exponent), rounded = ldexp(rint(ldexp(mantissa, 40)), exponent - 40);
            memcpy(&out[e], &rounded, sizeof rounded);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------- Ward */

WIDE static void squared_gaps(const double *centres, int64_t d, int64_t n, int64_t used, int64_t i, double *restrict gap) {
    int64_t t = 0;
    for (int64_t j = 0; j < used; j++) gap[j] = 0.0;
    for (; t + 4 < d; t += 5) {
        const double *p = centres + t * n, *q = p + n, *r = q + n, *s = r + n, *u = s + n;
        const double a = p[i], b = q[i], c = r[i], e = s[i], f = u[i];
        for (int64_t j = 0; j < used; j++) {
            const double x = p[j] - a, y = q[j] - b, z = r[j] - c, v = s[j] - e, w = u[j] - f;
            gap[j] += x * x + y * y + z * z + v * v + w * w;
        }
    }
    for (; t < d; t++) {
        const double *p = centres + t * n, a = p[i];
        for (int64_t j = 0; j < used; j++) gap[j] += (p[j] - a) * (p[j] - a);
    }
}

/* The nearest cluster by Ward's criterion, from gaps; on ties the one before wins, then the smallest, then the first. */
WIDE static int64_t nearest(const double *gap, const double *size, int64_t used, double mine, int64_t before,
                       double *lowest) {
    const double least = mine / (mine + 1.0);
    int64_t best = before;
    double low = best >= 0 ? gap[best] * (mine * size[best] / (mine + size[best])) : INFINITY;
    for (int64_t j = 0; j < used; j++) {
        while (j + 8 <= used) { /* eight that are all too far: what is the lowest only falls */
            int near = 0;
            for (int64_t k = 0; k < 8; k++) near |= gap[j + k] * least <= low;
            if (near) break;
            j += 8;
        }
        const int64_t stop = j + 8 < used ? j + 8 : used;
        for (; j < stop; j++) {
            if (!(gap[j] * least <= low)) continue;
            const double value = gap[j] * (mine * size[j] / (mine + size[j]));
            if (value < low || (value == low && best != before && size[j] < size[best])) low = value, best = j;
        }
        j--;
    }
    *lowest = low;
    return best;
}

/* The columns of clusters that are gone are squeezed out; `moved_to` says where the others are then. */
static int64_t squeeze(double *centres, int64_t d, int64_t n, int64_t used, double *size, int64_t *point,
                       uint8_t *alive, int64_t *moved_to) {
    int64_t left = 0;
    for (int64_t j = 0; j < used; j++) {
        if (!alive[j]) continue;
        moved_to[j] = left, size[left] = size[j], point[left] = point[j];
        for (int64_t t = 0; t < d; t++) centres[t * n + left] = centres[t * n + j];
        left++;
    }
    memset(alive, 1, (size_t)left);
    return left;
}

/* The smallest cluster, of several the first: equal points then pair up, instead of joining a growing heap one by one. */
static int64_t smallest(const double *size, const uint8_t *alive, int64_t used) {
    int64_t first = -1;
    for (int64_t j = 0; j < used; j++)
        if (alive[j] && (first < 0 || size[j] < size[first])) first = j;
    return first;
}

/* Another cluster than i, where all distances overflow: any will do. */
static int64_t other_than(int64_t i, const uint8_t *alive) {
    int64_t j = 0;
    while (!alive[j] || j == i) j++;
    return j;
}

int64_t ward_merges(double *centres, int64_t d, int64_t n, int64_t *merged, double *heights, const uint8_t *stop) {
    const size_t count_bytes = (size_t)n * sizeof(int64_t) + 1, number_bytes = (size_t)n * sizeof(double) + 1;
    double *size = malloc(number_bytes), *gap = malloc(number_bytes);
    int64_t *point = malloc(count_bytes), *chain = malloc(count_bytes), *moved_to = malloc(count_bytes);
    uint8_t *alive = malloc((size_t)n + 1);
    int64_t length = 0, used = n; /* of the chain, and columns in use */
    const int64_t failed = size && gap && point && chain && moved_to && alive ? 0 : -1;
    for (int64_t j = 0; j < n && !failed; j++) size[j] = 1.0, point[j] = j, alive[j] = 1;
    for (int64_t k = 0; k < n - 1 && !failed; k++) {
        if (*(const volatile uint8_t *)stop) break;
        if (used > 64 && (double)(n - k) < 0.8 * (double)used) {
            used = squeeze(centres, d, n, used, size, point, alive, moved_to);
            for (int64_t link = 0; link < length; link++) chain[link] = moved_to[chain[link]];
        }
        if (length == 0) chain[0] = smallest(size, alive, used), length = 1;
        int64_t i, best;
        double lowest;
        for (;;) {
            i = chain[length - 1];
            squared_gaps(centres, d, n, used, i, gap);
            gap[i] = INFINITY;
            best = nearest(gap, size, used, size[i], length > 1 ? chain[length - 2] : -1, &lowest);
            if (best < 0) best = other_than(i, alive);
            if (length > 1 && best == chain[length - 2]) break;
            chain[length++] = best;
        }
        const int64_t low = i < best ? i : best, high = i < best ? best : i;
        const double total = size[low] + size[high];
        for (int64_t t = 0; t < d; t++) {
            double *row = centres + t * n;
            row[low] = (size[low] * row[low] + size[high] * row[high]) / total;
            row[high] = INFINITY; /* infinitely far from everybody */
        }
        merged[2 * k] = point[low], merged[2 * k + 1] = point[high], heights[k] = lowest;
        size[low] = total, alive[high] = 0;
        length -= 2;
    }
    free(size), free(gap), free(point), free(chain), free(moved_to), free(alive);
    return failed;
}

int64_t name_merges(const int64_t *merged, int64_t count, double *linkage) {
    const int64_t n = count + 1;
    int64_t *parent = malloc((size_t)n * 3 * sizeof(int64_t)), *name = parent + n, *size = name + n;
    if (!parent) return -1;
    for (int64_t i = 0; i < n; i++) parent[i] = name[i] = i, size[i] = 1;
    for (int64_t k = 0; k < count; k++) {
        const int64_t a = top__i8(parent, merged[2 * k]), b = top__i8(parent, merged[2 * k + 1]);
        linkage[4 * k] = (double)(name[a] < name[b] ? name[a] : name[b]);
        linkage[4 * k + 1] = (double)(name[a] < name[b] ? name[b] : name[a]);
        parent[b] = a, size[a] += size[b], name[a] = n + k;
        linkage[4 * k + 3] = (double)size[a];
    }
    free(parent);
    return 0;
}
