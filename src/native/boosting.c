/* Gradient boosting; the twins are in pegfan/training/_boosting.py. Gradients are integers, so that their sums do not
   depend on the order of the terms. */
#include "common.h"

#define UNIT 16777216.0
/* The four numbers of a bin, added at once. */
#if defined(__GNUC__)
typedef int64_t bin __attribute__((vector_size(32), aligned(8), may_alias));
#define ADD(to, of) (*(bin *)(to) += *(const bin *)(of))
#else
#define ADD(to, of) (to)[0] += (of)[0], (to)[1] += (of)[1], (to)[2] += (of)[2]
#endif

/* What is known of a place of a tree: the columns of `places`. */
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
            ADD(own + one[r] * 4, near + 4 * i);
            ADD(own + stride + other[r] * 4, near + 4 * i);
        }
    }
    for (; s < n_chosen; s++)
        for (int64_t i = start; i < stop; i++) ADD(out + s * stride + bins[chosen[s] * n + order[i]] * 4, near + 4 * i);
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
        double left_g[256], left_h[256], gain[256];
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

WIDE int64_t boost_grow(const uint8_t *bins, int64_t n_bins, int64_t n, const int64_t *widths, int64_t n_widths,
                        const int64_t *chosen, int64_t n_chosen, const int64_t *g, int64_t n_g, const int64_t *h,
                        int64_t n_h, int64_t leaves, int64_t fewest, double l2, double rate, int64_t *order,
                        int64_t n_order, int64_t *spare, int64_t n_spare, int64_t *near, int64_t n_near, int64_t four,
                        int64_t *sums, int64_t n_sums, int64_t n_columns, int64_t d_bins, int64_t d_sums,
                        int64_t *places, int64_t n_places, int64_t facts, double *gain, int64_t n_gain,
                        int32_t *column, int64_t n_column, int32_t *bin_at, int64_t n_bin_at, int32_t *child,
                        int64_t n_child, double *value, int64_t n_value, double *gains, int64_t n_gains) {
    const int64_t stride = d_bins * 4, room = n_columns * stride; /* numbers per column, and per histogram of all */
    int64_t count = 1, grown = 1;
    (void)n_bins, (void)n_widths, (void)n_g, (void)n_h, (void)n_spare, (void)n_near, (void)four, (void)n_sums;
    (void)d_sums, (void)facts, (void)n_column, (void)n_bin_at, (void)n_child, (void)n_value;
    (void)n_gains, (void)n_gain, (void)n_order;
    memset(places, 0, (size_t)(n_places * FACTS) * sizeof *places);
    for (int64_t i = 0; i < n; i++) {
        order[i] = i;
        places[G] += g[i], places[H] += h[i];
    }
    places[ROWS] = places[STOP] = n;
    for (int64_t p = 0; p < n_places; p++) column[p] = child[p] = -1, bin_at[p] = 0, gain[p] = 0.0;
    histograms(bins, n, widths, chosen, n_chosen, order, 0, n, g, h, near, sums, stride);
    gain[0] = best_split(sums, widths, chosen, n_chosen, places, l2, fewest, stride);
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
        memcpy(order + a, spare, (size_t)b * sizeof *order);
        left[START] = parent[START], left[STOP] = right[START] = a, right[STOP] = a + b;
        left[ROWS] = a - parent[START];
        for (int what = G; what <= ROWS; what++) right[what] = parent[what] - left[what];
        int64_t *small = left[ROWS] <= b ? left : right, *large = small == left ? right : left;
        small[SUMS] = grown, large[SUMS] = parent[SUMS];
        int64_t *restrict few = sums + small[SUMS] * room, *restrict many = sums + large[SUMS] * room;
        histograms(bins, n, widths, chosen, n_chosen, order, small[START], small[STOP], g, h, near, few, stride);
        for (int64_t s = 0; s < n_chosen; s++)
            for (int64_t q = s * stride; q < s * stride + widths[chosen[s]] * 4; q++) many[q] -= few[q];
        gain[count] = best_split(sums + left[SUMS] * room, widths, chosen, n_chosen, left, l2, fewest, stride);
        gain[count + 1] = best_split(sums + right[SUMS] * room, widths, chosen, n_chosen, right, l2, fewest, stride);
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

void boost_add_rows(const int64_t *order, int64_t n, const int64_t *places, int64_t n_places, int64_t facts,
                    const int32_t *child, int64_t n_child, const double *value, int64_t n_value, int64_t count,
                    double *out, int64_t n_out) {
    (void)n, (void)n_places, (void)facts, (void)n_child, (void)n_value, (void)n_out;
    for (int64_t p = 0; p < count; p++) {
        if (child[p] >= 0) continue;
        for (int64_t i = places[p * FACTS + START]; i < places[p * FACTS + STOP]; i++) out[order[i]] += value[p];
    }
}

void boost_add_bins(const uint8_t *bins, int64_t columns, int64_t n, const int32_t *column, int64_t n_column,
                    const int32_t *bin_at, int64_t n_bin_at, const int32_t *child, int64_t n_child,
                    const double *value, int64_t n_value, double *out, int64_t n_out) {
    (void)columns, (void)n_column, (void)n_bin_at, (void)n_child, (void)n_value;
    for (int64_t r = 0; r < n_out; r++) {
        int64_t place = 0;
        while (child[place] >= 0) place = child[place] + (bins[column[place] * n + r] > bin_at[place]);
        out[r] += value[place];
    }
}

void boost_walk(const float *x, int64_t n, int64_t d, const int32_t *column, int64_t trees, int64_t size,
                const float *threshold, int64_t n_threshold, int64_t d_threshold, const int32_t *child,
                int64_t n_child, int64_t d_child, const double *value, int64_t n_value, int64_t d_value, double *out,
                int64_t n_out, int64_t outputs) {
    (void)n_threshold, (void)d_threshold, (void)n_child, (void)d_child, (void)n_value, (void)d_value, (void)n_out;
    for (int64_t r = 0; r < n; r++)
        for (int64_t t = 0; t < trees; t++) {
            int64_t place = t * size;
            while (child[place] >= 0)
                place = t * size + child[place] + !(x[r * d + column[place]] <= threshold[place]);
            out[r * outputs + t % outputs] += value[place];
        }
}

void boost_walk_apart(const float *x, int64_t n, int64_t d, const int32_t *column, int64_t trees, int64_t size,
                      const float *threshold, int64_t n_threshold, int64_t d_threshold, const int32_t *child,
                      int64_t n_child, int64_t d_child, const double *value, int64_t n_value, int64_t d_value,
                      double *out, int64_t n_out, int64_t outputs, int64_t d_out) {
    (void)n_threshold, (void)d_threshold, (void)n_child, (void)d_child, (void)n_value, (void)d_value, (void)n_out;
    (void)d_out;
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
