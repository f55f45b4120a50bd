/* Relations between nodes that need not be neighbours; their declarations are in pegfan/relations/_kernels.py. */
#include "common.h"

void nearest_degrees(const int64_t *order, const int64_t *first, int64_t count, const int64_t *degrees, int64_t around,
                     int32_t *out, int64_t most) {
    for (int64_t c = 0; c < count; c++)
        for (int64_t position = first[c]; position < first[c + 1]; position++) {
            const int64_t i = order[position];
            int64_t low = c - 1, high = c + 1, now = c, filled = 0;
            while (1) {
                const int64_t start = first[now], size = first[now + 1] - first[now];
                for (int64_t step = 0; step < size && filled < most; step++) {
                    int64_t at = start + step;
                    if (around && now == c)
                        at = start + (position - start + 1 + step) % size;
                    else if (around && now < c)
                        at = start + size - 1 - step;
                    if (order[at] != i) out[i * most + filled++] = (int32_t)order[at];
                }
                if (filled == most || (low < 0 && high == count)) break;
                if (low < 0 || (high < count && degrees[high] - degrees[c] <= degrees[c] - degrees[low]))
                    now = high++;
                else
                    now = low--;
            }
        }
}

/* The next ring of a node: its members join the queue, and the classes of their degrees are counted. */
static int64_t next_ring(const int32_t *indptr, const int32_t *indices, const int64_t *class_of, int64_t root,
                         int64_t head, int64_t ring_end, int64_t reach, int32_t *stamp, int32_t *queue, int32_t *counts,
                         int64_t *low, int64_t *high) {
    int64_t tail = ring_end;
    while (head < ring_end && tail < reach) {
        const int64_t i = queue[head++];
        for (int64_t e = indptr[i]; e < indptr[i + 1]; e++) {
            const int64_t j = indices[e];
            if (stamp[j] == root) continue;
            stamp[j] = (int32_t)root;
            queue[tail++] = (int32_t)j;
            counts[class_of[j]]++;
            if (class_of[j] < *low) *low = class_of[j];
            if (class_of[j] > *high) *high = class_of[j];
        }
    }
    return tail;
}

int64_t rings(const int32_t *indptr, const int32_t *indices, const int64_t *class_of, const int64_t *reach, int64_t begin,
              int32_t *stamp, int32_t *queue, int32_t *counts, int64_t classes, int64_t *sizes, int64_t n,
              int64_t layers, int32_t *which, int32_t *many) {
    int64_t end = 0;
    for (int64_t b = 0; b < n; b++) {
        const int64_t root = begin + b;
        int64_t head = 0, tail = 1;
        stamp[root] = (int32_t)root, queue[0] = (int32_t)root;
        for (int64_t k = 0; k < layers; k++) {
            const int64_t ring_end = tail, before = end;
            int64_t low = classes, high = -1;
            tail = next_ring(indptr, indices, class_of, root, head, ring_end, reach[root], stamp, queue, counts, &low, &high);
            head = ring_end;
            for (int64_t c = low; c <= high; c++) {
                if (!counts[c]) continue;
                which[end] = (int32_t)c, many[end++] = counts[c];
                counts[c] = 0;
            }
            sizes[b * layers + k] = end - before;
            if (tail == ring_end) break;
        }
    }
    return end;
}

ALWAYS_INLINE double cost(double a, double b, int32_t many_a, int32_t many_b) {
    return ((a > b ? a : b) / (a > b ? b : a) - 1.0) * (double)(many_a > many_b ? many_a : many_b);
}

/* The cost of the path that always takes the cheapest step. */
static double greedy(const double *a, const int32_t *many_a, int64_t n_a, const double *b, const int32_t *many_b,
                     int64_t n_b) {
    int64_t i = 0, j = 0;
    double total = cost(a[0], b[0], many_a[0], many_b[0]);
    while (i + 1 < n_a || j + 1 < n_b) {
        double best = INFINITY;
        int64_t di = 0, dj = 0;
        if (i + 1 < n_a && j + 1 < n_b) best = cost(a[i + 1], b[j + 1], many_a[i + 1], many_b[j + 1]), di = dj = 1;
        if (i + 1 < n_a) {
            const double value = cost(a[i + 1], b[j], many_a[i + 1], many_b[j]);
            if (value < best) best = value, di = 1, dj = 0;
        }
        if (j + 1 < n_b) {
            const double value = cost(a[i], b[j + 1], many_a[i], many_b[j + 1]);
            if (value < best) best = value, di = 0, dj = 1;
        }
        i += di, j += dj;
        total += best;
    }
    return total;
}

/* The cost of the best path: of the table only a band is worked out, row by row. */
static double time_warp(const double *a, const int32_t *many_a, int64_t n_a, const double *b, const int32_t *many_b,
                        int64_t width, double *above, double *row) {
    const double bound = greedy(a, many_a, n_a, b, many_b, width);
    int64_t start = 0, stop = 1;
    if (bound == 0.0) return 0.0;
    for (int64_t i = 0; i < n_a; i++) {
        int64_t new_start = width, new_stop = start;
        double left = INFINITY;
        for (int64_t j = start; j < width; j++) {
            double best = left;
            if (i == 0)
                best = j ? left : 0.0;
            else {
                if (j < stop && above[j] < best) best = above[j];
                if (start < j && j <= stop && above[j - 1] < best) best = above[j - 1];
                if (j > stop && left == INFINITY) break;
            }
            left = best + cost(a[i], b[j], many_a[i], many_b[j]);
            if (left <= bound) {
                if (new_start == width) new_start = j;
                new_stop = j + 1;
            } else {
                left = INFINITY;
                if (i == 0 || j > stop) break;
            }
            row[j] = left;
        }
        double *other = above;
        above = row, row = other;
        start = new_start, stop = new_stop;
    }
    return above[width - 1];
}

void add_distances(int64_t begin, int64_t end, const int32_t *candidates, int64_t most, const int64_t *first,
                   const int32_t *which, const int32_t *many, const double *values, int64_t classes, double *total,
                   double *room) {
    double *a = room, *b = room + classes, *above = room + 2 * classes, *row = room + 3 * classes;
    for (int64_t i = begin; i < end; i++) {
        const int64_t low = first[2 * i], high = first[2 * i + 1];
        for (int64_t e = low; e < high; e++) a[e - low] = values[which[e]];
        for (int64_t t = 0; t < most; t++) {
            double *sum = total + i * most + t;
            if (*sum == INFINITY) continue;
            const int64_t j = candidates[i * most + t], start = first[2 * j], stop = first[2 * j + 1];
            if (low == high || start == stop) {
                *sum = INFINITY;
                continue;
            }
            for (int64_t e = start; e < stop; e++) b[e - start] = values[which[e]];
            *sum += time_warp(a, many + low, high - low, b, many + start, stop - start, above, row);
        }
    }
}

void relation_weights(const double *distances, int64_t n, int64_t d, double *out) {
    for (int64_t i = 0; i < n; i++, distances += d, out += d) {
        double least = INFINITY, total = 0.0;
        for (int64_t t = 0; t < d; t++)
            if (distances[t] < least) least = distances[t];
        for (int64_t t = 0; t < d; t++) {
            out[t] = least == INFINITY ? 0.0 : exp(least - distances[t]);
            total += out[t];
        }
        if (least == INFINITY) continue;
        for (int64_t t = 0; t < d; t++) out[t] /= total;
    }
}

void nearest_nodes(const int64_t *order, const int64_t *first, int64_t points, const int64_t *near, int64_t d_near,
                   const double *gaps, int64_t *nodes, int64_t most, double *distances) {
    for (int64_t p = 0; p < points; p++) {
        const int64_t size = first[p + 1] - first[p];
        for (int64_t position = 0; position < size; position++) {
            const int64_t row = order[first[p] + position] * most;
            int64_t filled = 0;
            for (int64_t step = 1; step < size && filled < most; step++, filled++) {
                nodes[row + filled] = order[first[p] + (position + step) % size];
                distances[row + filled] = 0.0;
            }
            for (int64_t t = 0; t < d_near; t++) {
                const int64_t q = near[p * d_near + t];
                if (q == p) continue;
                for (int64_t at = first[q]; at < first[q + 1] && filled < most; at++, filled++) {
                    nodes[row + filled] = order[at];
                    distances[row + filled] = gaps[p * d_near + t];
                }
            }
        }
    }
}
