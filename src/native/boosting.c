/* Gradient boosting, declared in pegfan/training/boosting.py: histograms, the growth of a tree, walks down trees.
   Gradients are integers, 2^24 to the unit, so that their sums do not depend on the order of the terms. */
#include "common.h"

static const double UNIT = 16777216.0;
enum { MOST_BINS = 256 };

/* Add the four numbers of a bin, at once where the compiler has words of 32 bytes. */
#if defined(__GNUC__)
typedef int64_t bin __attribute__((vector_size(32), aligned(8), may_alias));
ALWAYS_INLINE void add_bin(int64_t *to, const int64_t *of) { *(bin *)to += *(const bin *)of; }
#else
ALWAYS_INLINE void add_bin(int64_t *to, const int64_t *of) { to[0] += of[0], to[1] += of[1], to[2] += of[2]; }
#endif

/* What is known of a place of a tree while it grows, the columns of `places`: which of the rows in order are there, which
   of the histograms it has, its best split (which of the columns chosen, and the last bin on the left), and its sums of
   gradients, of curvatures and of rows. */
enum { START, STOP, SUMS, SPLIT, LAST, G, H, ROWS, FACTS };

ALWAYS_INLINE void histograms(const uint8_t *bins, int64_t n, const int64_t *widths, const int64_t *chosen,
                              int64_t n_chosen, const int64_t *order, int64_t start, int64_t stop, const int64_t *g,
                              const int64_t *h, int64_t *restrict near, int64_t *restrict out, int64_t stride) {
    for (int64_t i = start; i < stop; i++) {
        near[4 * i] = g[order[i]], near[4 * i + 1] = h[order[i]];
        near[4 * i + 2] = 1, near[4 * i + 3] = 0;
    }
    for (int64_t s = 0; s < n_chosen; s++) memset(out + s * stride, 0, (size_t)widths[chosen[s]] * 4 * sizeof *out);
    int64_t s = 0;
    for (; s + 1 < n_chosen; s += 2) { /* two columns at a time: what one waits for, the other does not */
        const uint8_t *one = bins + chosen[s] * n, *other = bins + chosen[s + 1] * n;
        int64_t *own = out + s * stride;
        for (int64_t i = start; i < stop; i++) {
            const int64_t r = order[i];
            add_bin(own + one[r] * 4, near + 4 * i);
            add_bin(own + stride + other[r] * 4, near + 4 * i);
        }
    }
    for (; s < n_chosen; s++)
        for (int64_t i = start; i < stop; i++)
            add_bin(out + s * stride + bins[chosen[s] * n + order[i]] * 4, near + 4 * i);
}

/* The gain of the best split; of a place, which of the columns chosen it asks about and the last bin on the left. */
ALWAYS_INLINE double best_split(const int64_t *sums, const int64_t *widths, const int64_t *chosen, int64_t n_chosen,
                                int64_t *place, double l2, int64_t fewest, int64_t stride) {
    const double unit = 1.0 / UNIT, whole_g = (double)place[G] * unit, whole_h = (double)place[H] * unit;
    const double whole = whole_g * whole_g / (whole_h + l2);
    double best = 0.0;
    place[SPLIT] = place[LAST] = -1;
    for (int64_t s = 0; s < n_chosen; s++) {
        const int64_t *of = sums + s * stride, count = widths[chosen[s]] - 1;
        double left_g[MOST_BINS], left_h[MOST_BINS], gain[MOST_BINS];
        int64_t total_g = 0, total_h = 0, rows = 0;
        for (int64_t b = 0; b < count; b++) {
            total_g += of[4 * b], total_h += of[4 * b + 1];
            left_g[b] = (double)total_g * unit, left_h[b] = (double)total_h * unit;
        }
        for (int64_t b = 0; b < count; b++) {
            const double a = left_g[b], c = left_h[b];
            gain[b] = a * a / (c + l2) + (whole_g - a) * (whole_g - a) / (whole_h - c + l2) - whole;
        }
        for (int64_t b = 0; b < count; b++) {
            rows += of[4 * b + 2];
            if (rows < fewest || of[4 * b + 2] == 0) continue;
            if (place[ROWS] - rows < fewest) break;
            if (gain[b] > best * (1.0 + 1e-12)) best = gain[b], place[SPLIT] = s, place[LAST] = b;
        }
    }
    return best;
}

/* Whether histograms have room for the columns that are chosen. */
static int fits(const int64_t *widths, int64_t columns, const int64_t *chosen, int64_t asked, int64_t room,
                int64_t most) {
    if (asked > room || most > MOST_BINS) return 0;
    for (int64_t s = 0; s < asked; s++)
        if (chosen[s] < 0 || chosen[s] >= columns || widths[chosen[s]] < 1 || widths[chosen[s]] > most) return 0;
    return 1;
}

WIDE int64_t boost_grow(const uint8_t *bins, int64_t columns, int64_t n, const int64_t *widths, const int64_t *chosen,
                        int64_t asked, const int64_t *g, const int64_t *h, int64_t leaves, int64_t fewest, double l2,
                        double rate, int64_t *order, int64_t *spare, int64_t *near, int64_t *sums, int64_t room,
                        int64_t most, int64_t *places, double *gain, int32_t *column, int32_t *bin_at, int32_t *child,
                        double *value, double *gains) {
    if (!fits(widths, columns, chosen, asked, room, most)) return -1;
    const int64_t size = 2 * leaves - 1, stride = most * 4, whole = room * stride; /* numbers per column, and of all */
    int64_t count = 1, grown = 1;
    memset(places, 0, (size_t)(size * FACTS) * sizeof *places);
    for (int64_t i = 0; i < n; i++) {
        order[i] = i;
        places[G] += g[i], places[H] += h[i];
    }
    places[ROWS] = places[STOP] = n;
    for (int64_t p = 0; p < size; p++) column[p] = child[p] = -1, bin_at[p] = 0, gain[p] = 0.0;
    histograms(bins, n, widths, chosen, asked, order, 0, n, g, h, near, sums, stride);
    gain[0] = best_split(sums, widths, chosen, asked, places, l2, fewest, stride);
    while (grown < leaves) {
        int64_t p = -1;
        for (int64_t place = 0; place < count; place++)
            if (child[place] < 0 && gain[place] > 1e-9 && (p < 0 || gain[place] > gain[p])) p = place;
        if (p < 0) break;
        int64_t *parent = places + p * FACTS, *left = places + count * FACTS, *right = left + FACTS;
        const int64_t j = chosen[parent[SPLIT]], last = parent[LAST];
        const uint8_t *own = bins + j * n;
        column[p] = (int32_t)j, bin_at[p] = (int32_t)last, child[p] = (int32_t)count;
        gains[j] += gain[p];
        /* Rows of the left child come first; both keep their order. */
        int64_t a = parent[START], b = 0;
        for (int64_t i = parent[START]; i < parent[STOP]; i++) {
            const int64_t r = order[i];
            if (own[r] <= last) {
                order[a++] = r;
                left[G] += g[r], left[H] += h[r];
            } else
                spare[b++] = r;
        }
        if (b) memcpy(order + a, spare, (size_t)b * sizeof *order);
        left[START] = parent[START], left[STOP] = right[START] = a, right[STOP] = a + b;
        left[ROWS] = a - parent[START];
        for (int what = G; what <= ROWS; what++) right[what] = parent[what] - left[what];
        int64_t *small = left[ROWS] <= b ? left : right, *large = small == left ? right : left;
        small[SUMS] = grown, large[SUMS] = parent[SUMS];
        int64_t *restrict few = sums + small[SUMS] * whole, *restrict many = sums + large[SUMS] * whole;
        histograms(bins, n, widths, chosen, asked, order, small[START], small[STOP], g, h, near, few, stride);
        for (int64_t s = 0; s < asked; s++)
            for (int64_t q = s * stride; q < s * stride + widths[chosen[s]] * 4; q++) many[q] -= few[q];
        gain[count] = best_split(sums + left[SUMS] * whole, widths, chosen, asked, left, l2, fewest, stride);
        gain[count + 1] = best_split(sums + right[SUMS] * whole, widths, chosen, asked, right, l2, fewest, stride);
        count += 2;
        grown++;
    }
    for (int64_t p = count - 1; p >= 0; p--) {
        const int64_t *own = places + p * FACTS;
        if (child[p] < 0)
            value[p] = -rate * ((double)own[G] / UNIT) / ((double)own[H] / UNIT + l2);
        else {
            const int64_t k = child[p];
            value[p] = ((double)places[k * FACTS + ROWS] * value[k] +
                        (double)places[(k + 1) * FACTS + ROWS] * value[k + 1]) /
                       (double)own[ROWS];
        }
    }
    return count;
}

/* Places that the tree does not have have no rows. */
void boost_add_rows(const int64_t *order, int64_t n, const int64_t *places, int64_t size, const int32_t *child,
                    const double *value, double *out) {
    for (int64_t p = 0; p < size; p++) {
        if (child[p] >= 0) continue;
        for (int64_t i = places[p * FACTS + START]; i < places[p * FACTS + STOP] && i < n; i++)
            out[order[i]] += value[p];
    }
}

void boost_add_bins(const uint8_t *bins, int64_t n, const int32_t *column, const int32_t *bin_at, const int32_t *child,
                    const double *value, double *out) {
    for (int64_t r = 0; r < n; r++) {
        int64_t place = 0;
        while (child[place] >= 0) place = child[place] + (bins[column[place] * n + r] > bin_at[place]);
        out[r] += value[place];
    }
}

void boost_walk(const float *x, int64_t n, int64_t d, const int32_t *column, int64_t trees, int64_t size,
                const float *threshold, const int32_t *child, const double *value, double *out, int64_t outputs) {
    for (int64_t r = 0; r < n; r++)
        for (int64_t t = 0; t < trees; t++) {
            int64_t place = t * size;
            while (child[place] >= 0)
                place = t * size + child[place] + !(x[r * d + column[place]] <= threshold[place]);
            out[r * outputs + t % outputs] += value[place];
        }
}

void boost_walk_apart(const float *x, int64_t n, int64_t d, const int32_t *column, int64_t trees, int64_t size,
                      const float *threshold, const int32_t *child, const double *value, double *out,
                      int64_t outputs) {
    for (int64_t r = 0; r < n; r++)
        for (int64_t t = 0; t < trees; t++) {
            int64_t place = t * size;
            while (child[place] >= 0) {
                const int64_t j = column[place];
                const int64_t following = t * size + child[place] + !(x[r * d + j] <= threshold[place]);
                out[(r * outputs + t % outputs) * d + j] += value[following] - value[place];
                place = following;
            }
        }
}
