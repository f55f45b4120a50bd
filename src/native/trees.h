/* Loops over graphs, for one type of index: trees.c includes this once per type. */

/* Entries ahead whose lines are asked for: enough of them on their way to hide that memory is far. */
#define AHEAD 32

void NAME(gather_colours)(const INDEX *indptr, int64_t n_ptr, const INDEX *indices, int64_t n_indices,
                          const uint64_t *weights, int64_t n_weights, const uint64_t *colours, int64_t n_colours,
                          uint64_t factor, uint64_t *out, int64_t n_out) {
    (void)n_weights, (void)n_colours, (void)n_out;
    for (int64_t i = 0; i + 1 < n_ptr; i++) {
        uint64_t total = 0;
        for (int64_t e = indptr[i]; e < indptr[i + 1]; e++) {
            if (e + AHEAD < n_indices) PREFETCH(&colours[indices[e + AHEAD]]);
            total += mix(colours[indices[e]] ^ weights[e]);
        }
        out[i] += factor * total;
    }
}

void NAME(hash_some_rows)(const INDEX *nodes, int64_t n, const INDEX *indptr, int64_t n_ptr, const INDEX *indices,
                          int64_t n_indices, const uint64_t *bits, int64_t n_bits, int64_t with_self, uint64_t *out,
                          int64_t n_out) {
    (void)n_ptr, (void)n_indices, (void)n_bits, (void)n_out;
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = nodes[k], start = indptr[i], stop = indptr[i + 1];
        uint64_t total = 0;
        if (k + 8 < n) PREFETCH(&indices[indptr[nodes[k + 8]]]);
        for (int64_t e = start; e < stop; e++) total += mix(bits[e] ^ mix((uint64_t)indices[e] + COLUMN));
        if (with_self && start < stop) total += mix(bits[start] ^ mix((uint64_t)i + COLUMN));
        out[k] = mix(total);
    }
}

void NAME(add_by_label)(const INDEX *labels, int64_t n, const uint64_t *values, int64_t n_values, uint64_t *out,
                        int64_t n_out) {
    (void)n_values, (void)n_out;
    for (int64_t i = 0; i < n; i++) out[labels[i]] += values[i];
}

/* ------------------------------------------------------------------------------------------------- components */

ALWAYS_INLINE int64_t NAME(top)(INDEX *parent, int64_t i) {
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

ALWAYS_INLINE void NAME(link)(INDEX *parent, int64_t i, int64_t j) {
    const int64_t a = NAME(top)(parent, i), b = NAME(top)(parent, j);
    if (a < b) parent[b] = (INDEX)a;
    if (b < a) parent[a] = (INDEX)b;
}

/* Where every arc has its opposite, two arcs per node are enough to find most of the largest component, and the arcs
   of its nodes need no second look. */
int64_t NAME(components)(const INDEX *indptr, int64_t n_ptr, const INDEX *indices, int64_t n_indices,
                         int64_t symmetric, INDEX *parent, int64_t n, INDEX *labels, int64_t n_labels) {
    (void)n_ptr, (void)n_labels;
    int64_t largest = -1, count = 0;
    for (int64_t i = 0; i < n; i++) parent[i] = (INDEX)i;
    if (symmetric) {
        for (int64_t i = 0; i < n; i++) {
            const int64_t stop = indptr[i + 1] < indptr[i] + 2 ? indptr[i + 1] : indptr[i] + 2;
            if (indptr[i] + 4 * AHEAD < n_indices) PREFETCH(&parent[indices[indptr[i] + 4 * AHEAD]]);
            for (int64_t e = indptr[i]; e < stop; e++) NAME(link)(parent, i, indices[e]);
        }
        int64_t most = 0;
        for (int64_t k = 0; k < 64; k++) { /* the component of most of 64 nodes */
            const int64_t a = NAME(top)(parent, (int64_t)(mix((uint64_t)k) % (uint64_t)n));
            int64_t same = 0;
            for (int64_t l = 0; l < 64; l++)
                same += NAME(top)(parent, (int64_t)(mix((uint64_t)l) % (uint64_t)n)) == a;
            if (same > most) most = same, largest = a;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        if (symmetric && NAME(top)(parent, i) == largest) continue;
        for (int64_t e = indptr[i]; e < indptr[i + 1]; e++) {
            if (e + AHEAD < n_indices) PREFETCH(&parent[indices[e + AHEAD]]);
            NAME(link)(parent, i, indices[e]);
        }
        if (symmetric) largest = NAME(top)(parent, largest);
    }
    for (int64_t i = 0; i < n; i++) {
        parent[i] = parent[parent[i]]; /* what stands before is a root or leads straight to one */
        labels[i] = parent[i] == i ? (INDEX)count++ : labels[parent[i]];
    }
    return count;
}

/* --------------------------------------------------------------------------------------------- moving and sorting */

/* The places of a row's entries in the order of their columns, from column << 32 | entry. Short rows count for every
   entry how many come before, which needs no branches. */
ALWAYS_INLINE void NAME(sort_entries)(uint64_t *keys, uint64_t *other, int64_t n) {
    if (n > 32) {
        sort_keys(keys, other, n);
        return;
    }
    int32_t columns[32];
    const int64_t wide = n > 16 ? 32 : 16;
    for (int64_t k = 0; k < n; k++) columns[k] = (int32_t)((keys[k] >> 32) ^ 0x80000000), other[k] = keys[k];
    for (int64_t k = n; k < wide; k++) columns[k] = INT32_MAX;
    int64_t before = 0;
    for (int64_t k = 0; k < n; k++) {
        const int32_t column = columns[k];
        int32_t place = 0;
        if (wide == 16)
            for (int64_t l = 0; l < 16; l++) place += columns[l] < column;
        else
            for (int64_t l = 0; l < 32; l++) place += columns[l] < column;
        keys[place] = other[k];
        before += place;
    }
    if (before == n * (n - 1) / 2) return; /* of every two entries one comes first, but where a column stands twice */
    memcpy(keys, other, (size_t)n * sizeof(uint64_t));
    sort_keys(keys, other, n);
}

#define GROW_KEYS(LENGTH)                                                                                             \
    if (LENGTH > room) {                                                                                              \
        free(keys);                                                                                                   \
        room = 2 * (LENGTH);                                                                                          \
        keys = malloc((size_t)room * 2 * sizeof(uint64_t));                                                           \
        if (!keys) return -1;                                                                                         \
    }

#define MOVE_ROWS(FUNCTION, VALUE)                                                                                    \
    int64_t FUNCTION(const INDEX *order, int64_t n, const INDEX *place, int64_t n_place, const INDEX *indptr,         \
                     int64_t n_ptr, const INDEX *indices, int64_t n_indices, const VALUE *data, int64_t n_data,       \
                     INDEX *out_ptr, int64_t n_out_ptr, INDEX *out_indices, int64_t n_out, VALUE *out_data,           \
                     int64_t n_out_data) {                                                                            \
        (void)n_place, (void)n_ptr, (void)n_indices, (void)n_data, (void)n_out_ptr, (void)n_out, (void)n_out_data;    \
        int64_t end = 0, room = 0;                                                                                    \
        uint64_t *keys = NULL;                                                                                        \
        out_ptr[0] = 0;                                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                                             \
            if (i + 16 < n) PREFETCH(&indptr[order[i + 16]]);                                                         \
            if (i + 8 < n) {                                                                                          \
                const int64_t at = indptr[order[i + 8]];                                                              \
                PREFETCH(&indices[at]), PREFETCH(&data[at]), PREFETCH(&data[at] + 64 / sizeof(VALUE));                \
            }                                                                                                         \
            if (i + 4 < n) {                                                                                          \
                const int64_t at = indptr[order[i + 4]], stop = indptr[order[i + 4] + 1];                             \
                for (int64_t e = at; e < stop && e < at + AHEAD; e++) PREFETCH(&place[indices[e]]);                   \
            }                                                                                                         \
            const int64_t start = indptr[order[i]], stop = indptr[order[i] + 1];                                      \
            int64_t length = 0;                                                                                       \
            GROW_KEYS(stop - start + 32)                                                                              \
            for (int64_t e = start; e < stop; e++) {                                                                  \
                if (e + AHEAD < stop) PREFETCH(&place[indices[e + AHEAD]]);                                           \
                const INDEX column = place[indices[e]];                                                               \
                keys[length] = (uint64_t)column << 32 | (uint64_t)(e - start);                                        \
                length += column >= 0;                                                                                \
            }                                                                                                         \
            NAME(sort_entries)(keys, keys + room, length);                                                            \
            for (int64_t k = 0; k < length; k++) {                                                                    \
                out_indices[end] = (INDEX)(keys[k] >> 32);                                                            \
                out_data[end++] = data[start + (int64_t)(keys[k] & 0xFFFFFFFF)];                                      \
            }                                                                                                         \
            out_ptr[i + 1] = (INDEX)end;                                                                              \
        }                                                                                                             \
        free(keys);                                                                                                   \
        return end;                                                                                                   \
    }

MOVE_ROWS(NAME2(move_rows, u8), uint64_t)
MOVE_ROWS(NAME2(move_rows, u4), uint32_t)

#define LIST_ROWS(FUNCTION, VALUE)                                                                                    \
    int64_t FUNCTION(const INDEX *place, int64_t n_place, const INDEX *indptr, int64_t n_ptr, const INDEX *indices,   \
                     int64_t n_indices, const VALUE *data, int64_t n_data, INDEX *out_indices, int64_t n_out,         \
                     VALUE *out_data, int64_t n_out_data) {                                                           \
        (void)n_place, (void)n_data, (void)n_out, (void)n_out_data;                                                   \
        int64_t room = 0;                                                                                             \
        uint64_t *keys = NULL;                                                                                        \
        for (int64_t i = 0; i + 1 < n_ptr; i++) {                                                                     \
            const int64_t start = indptr[i], length = indptr[i + 1] - start;                                          \
            GROW_KEYS(length + 32)                                                                                    \
            for (int64_t k = 0; k < length; k++) {                                                                    \
                if (start + k + AHEAD < n_indices) PREFETCH(&place[indices[start + k + AHEAD]]);                      \
                keys[k] = (uint64_t)place[indices[start + k]] << 32 | (uint64_t)k;                                    \
            }                                                                                                         \
            NAME(sort_entries)(keys, keys + room, length);                                                            \
            for (int64_t k = 0; k < length; k++) {                                                                    \
                const int64_t e = start + (int64_t)(keys[k] & 0xFFFFFFFF);                                            \
                out_indices[start + k] = indices[e], out_data[start + k] = data[e];                                   \
            }                                                                                                         \
        }                                                                                                             \
        free(keys);                                                                                                   \
        return 0;                                                                                                     \
    }

LIST_ROWS(NAME2(list_rows, u8), uint64_t)
LIST_ROWS(NAME2(list_rows, u4), uint32_t)

void NAME(order_by_label)(const INDEX *labels, int64_t n, INDEX *first, int64_t n_first, INDEX *members,
                          int64_t n_members) {
    (void)n_members;
    memset(first, 0, (size_t)n_first * sizeof(INDEX));
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n) PREFETCH(&first[labels[i + AHEAD] + 1]);
        first[labels[i] + 1]++;
    }
    for (int64_t c = 1; c < n_first; c++) first[c] += first[c - 1];
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n) PREFETCH(&first[labels[i + AHEAD]]);
        members[first[labels[i]]++] = (INDEX)i;
    }
    for (int64_t c = n_first - 1; c > 0; c--) first[c] = first[c - 1]; /* each was moved on to the next */
    first[0] = 0;
}

int64_t NAME(holds_each_once)(const INDEX *values, int64_t n, uint8_t *seen, int64_t n_seen) {
    for (int64_t i = 0; i < n; i++) {
        if (values[i] < 0 || values[i] >= n_seen || seen[values[i]]) return 0;
        seen[values[i]] = 1;
    }
    return n == n_seen;
}

int64_t NAME(number_by_appearance)(const INDEX *labels, int64_t n, INDEX *place, int64_t n_place, INDEX *out,
                                   int64_t n_out) {
    (void)n_out;
    int64_t count = 0;
    for (int64_t k = 0; k < n_place; k++) place[k] = -1;
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n) PREFETCH(&place[labels[i + AHEAD]]);
        if (place[labels[i]] < 0) place[labels[i]] = (INDEX)count++;
        out[i] = place[labels[i]];
    }
    return count;
}

/* Sort keys below a bit, and what goes with them; of equal keys the first stays first. */
static void NAME(sort_below)(uint64_t *keys, INDEX *with, uint64_t *other_keys, INDEX *other, int64_t n, int bit) {
    if (n <= 24) {
        for (int64_t k = 1; k < n; k++) {
            const uint64_t key = keys[k];
            const INDEX value = with[k];
            int64_t l = k;
            for (; l > 0 && keys[l - 1] > key; l--) keys[l] = keys[l - 1], with[l] = with[l - 1];
            keys[l] = key, with[l] = value;
        }
        return;
    }
    int64_t ends[MOST_PARTS + 1];
    int64_t k = 1;
    while (k < n && keys[k] == keys[0]) k++;
    if (k == n || bit <= 0) return;
    const int shift = next_shift(n, bit);
    const int64_t parts = INT64_C(1) << (bit - shift);
    const uint64_t digits = (uint64_t)parts - 1;
    memset(ends, 0, (size_t)(parts + 1) * sizeof(int64_t));
    for (k = 0; k < n; k++) ends[(keys[k] >> shift & digits) + 1]++;
    for (k = 1; k <= parts; k++) ends[k] += ends[k - 1];
    for (k = 0; k < n; k++) {
        const int64_t at = ends[keys[k] >> shift & digits]++;
        other_keys[at] = keys[k], other[at] = with[k];
    }
    memcpy(keys, other_keys, (size_t)n * sizeof(uint64_t));
    memcpy(with, other, (size_t)n * sizeof(INDEX));
    int64_t start = 0;
    for (k = 0; k < parts; k++) {
        if (ends[k] - start > 1)
            NAME(sort_below)(keys + start, with + start, other_keys + start, other + start, ends[k] - start, shift);
        start = ends[k];
    }
}

int64_t NAME(sort_hashes)(const uint64_t *hashes, int64_t n, uint64_t *sorted, int64_t n_sorted, INDEX *order,
                           int64_t n_order) {
    (void)n_sorted, (void)n_order;
    uint64_t *keys = malloc((size_t)n * sizeof(uint64_t) + 1);
    INDEX *with = malloc((size_t)n * sizeof(INDEX) + 1);
    if (keys && with) {
        memcpy(sorted, hashes, (size_t)n * sizeof(uint64_t));
        for (int64_t i = 0; i < n; i++) order[i] = (INDEX)i;
        NAME(sort_below)(sorted, order, keys, with, n, 64);
    }
    const int64_t found = keys && with ? 0 : -1;
    free(keys), free(with);
    return found;
}

/* --------------------------------------------------------------------------------------------------- matching */

int64_t NAME(upper_pairs)(const INDEX *indptr, int64_t n_ptr, const INDEX *indices, int64_t n_indices,
                          const double *data, int64_t n_data, const double *root, int64_t n_root, int64_t start,
                          INDEX *pairs, int64_t n_pairs, int64_t two, double *score, int64_t n_score) {
    (void)n_data, (void)n_root, (void)n_pairs, (void)two, (void)n_score;
    int64_t m = 0;
    for (int64_t row = 0; row + 1 < n_ptr; row++) {
        const int64_t i = start + row;
        const double own = root[i];
        for (int64_t e = indptr[row]; e < indptr[row + 1]; e++) {
            if (e + AHEAD < n_indices && indices[e + AHEAD] > i) PREFETCH(&root[indices[e + AHEAD]]);
            const INDEX j = indices[e];
            if (j <= i) continue;
            pairs[2 * m] = (INDEX)i, pairs[2 * m + 1] = j;
            score[m++] = data[e] / (own * root[j]);
        }
    }
    return m;
}

void NAME(shake_weights)(const INDEX *indptr, int64_t n_ptr, const INDEX *indices, int64_t n_indices, uint64_t seed,
                         double *data, int64_t n_data) {
    (void)n_indices, (void)n_data;
    static const double scale[4] = {0.25, 0.5, 1.0, 2.0};
    for (int64_t i = 0; i + 1 < n_ptr; i++)
        for (int64_t e = indptr[i]; e < indptr[i + 1]; e++) {
            const int64_t j = indices[e];
            const uint64_t bits = mix(mix(mix(seed) ^ (uint64_t)(i < j ? i : j)) ^ (uint64_t)(i < j ? j : i));
            data[e] *= (1.0 + (double)(bits >> 12) * 0x1p-52) * scale[bits & 3];
        }
}

int64_t NAME(sort_pairs)(const INDEX *pairs, int64_t n, int64_t two, const double *score, int64_t n_score, double low,
                         double high, INDEX *sorted, int64_t n_sorted, int64_t also_two) {
    (void)two, (void)n_score, (void)n_sorted, (void)also_two;
    int64_t *ends = calloc(65537, sizeof(int64_t));
    if (!ends) return -1;
    const double gap = high - low, scale = 65535.0 / (gap > 1e-12 ? gap : 1e-12);
    for (int64_t e = 0; e < n; e++) ends[to_16_bits((high - height(score[e])) * scale) + 1]++;
    for (int64_t k = 1; k < 65537; k++) ends[k] += ends[k - 1];
    for (int64_t e = 0; e < n; e++) {
        const int64_t at = ends[to_16_bits((high - height(score[e])) * scale)]++;
        sorted[2 * at] = pairs[2 * e], sorted[2 * at + 1] = pairs[2 * e + 1];
    }
    free(ends);
    return 0;
}

/* While clusters grow, -parent is the size of the cluster of a root: one line of memory says both. */
ALWAYS_INLINE int64_t NAME(root)(INDEX *parent, int64_t i) {
    while (parent[i] >= 0) {
        const INDEX above = parent[i];
        if (parent[above] >= 0) parent[i] = parent[above];
        i = above;
    }
    return i;
}

void NAME(settle)(INDEX *parent, int64_t n, uint8_t *alone, int64_t n_alone) {
    (void)n_alone;
    for (int64_t i = 0; i < n; i++) { /* a root stands before the rest of its cluster, and now leads to itself */
        alone[i] = parent[i] == -1;
        if (parent[i] < 0)
            parent[i] = (INDEX)i;
        else
            parent[i] = parent[parent[i]];
    }
}

void NAME(join_in_order)(const INDEX *pairs, int64_t n_pairs, int64_t two, int64_t most, INDEX *parent, int64_t n,
                         uint8_t *alone, int64_t n_alone) {
    (void)two;
    for (int64_t i = 0; i < n; i++) parent[i] = -1;
    for (int64_t e = 0; e < n_pairs; e++) {
        if (e + AHEAD < n_pairs) PREFETCH(&parent[pairs[2 * (e + AHEAD)]]), PREFETCH(&parent[pairs[2 * (e + AHEAD) + 1]]);
        const int64_t a = NAME(root)(parent, pairs[2 * e]), b = NAME(root)(parent, pairs[2 * e + 1]);
        const int64_t size = -((int64_t)parent[a] + (int64_t)parent[b]);
        if (a == b || size > most) continue;
        const int64_t low = a < b ? a : b, high = a < b ? b : a;
        parent[high] = (INDEX)low, parent[low] = (INDEX)-size;
    }
    NAME(settle)(parent, n, alone, n_alone);
}

void NAME(join_more)(const INDEX *pairs, int64_t n_pairs, int64_t two, int64_t most, INDEX *parent, int64_t n,
                     INDEX *first, int64_t n_first) {
    (void)two, (void)n, (void)n_first;
    for (int64_t e = 0; e < n_pairs; e++) {
        if (e + AHEAD < n_pairs) {
            const INDEX i = pairs[2 * (e + AHEAD)], j = pairs[2 * (e + AHEAD) + 1];
            PREFETCH(&parent[i]), PREFETCH(&parent[j]), PREFETCH(&first[i]), PREFETCH(&first[j]);
        }
        const INDEX i = pairs[2 * e], j = pairs[2 * e + 1];
        if (first[i] < 0) first[i] = j;
        if (first[j] < 0) first[j] = i;
        const int64_t a = NAME(root)(parent, i), b = NAME(root)(parent, j);
        const int64_t size = -((int64_t)parent[a] + (int64_t)parent[b]);
        if (a == b || size > most) continue;
        const int64_t low = a < b ? a : b, high = a < b ? b : a;
        parent[high] = (INDEX)low, parent[low] = (INDEX)-size;
    }
}

void NAME(row_entries)(const INDEX *rows, int64_t n, const INDEX *indptr, int64_t n_ptr, INDEX *out, int64_t n_out) {
    (void)n_ptr, (void)n_out;
    int64_t end = 0;
    for (int64_t k = 0; k < n; k++) {
        if (k + AHEAD < n) PREFETCH(&indptr[rows[k + AHEAD]]);
        for (INDEX e = indptr[rows[k]]; e < indptr[rows[k] + 1]; e++) out[end++] = e;
    }
}

void NAME(best_neighbours)(const INDEX *pairs, int64_t n_pairs, int64_t two, const INDEX *parent, int64_t n,
                           const uint8_t *alone, int64_t n_alone, INDEX *best, int64_t n_best) {
    (void)two, (void)n_alone, (void)n_best;
    int64_t waiting = 0;
    for (int64_t i = 0; i < n; i++) best[i] = -1, waiting += alone[i];
    for (int64_t e = 0; e < n_pairs && waiting; e++) {
        const INDEX i = pairs[2 * e], j = pairs[2 * e + 1];
        if (alone[i] && best[i] < 0) best[i] = parent[j], waiting--;
        if (alone[j] && best[j] < 0) best[j] = parent[i], waiting--;
    }
}

/* Each entry adds to the total of its cluster and sets a bit, in three layers of which each tells where the one below
   has any: reading them back gives the clusters in order, and nothing has to be sorted. */
int64_t NAME(sum_between)(const INDEX *members, int64_t n, const INDEX *first, int64_t n_first, const INDEX *labels,
                          int64_t n_labels, int64_t start, int64_t count, const INDEX *indptr, int64_t n_ptr, const INDEX *indices,
                          int64_t n_indices, const double *data, int64_t n_data, INDEX *between_ptr,
                          int64_t n_between_ptr, INDEX *between, int64_t n_between, double *weights,
                          int64_t n_weights) {
    (void)n_labels, (void)n_ptr, (void)n_indices, (void)n_data, (void)n_between_ptr, (void)n_between, (void)n_weights;
    const int64_t rows = n_first - 1, low_words = count / 64 + 1, middle_words = low_words / 64 + 1,
                  high_words = middle_words / 64 + 1;
    int64_t end = 0, room = 1024;
    uint64_t *low = calloc((size_t)(low_words + middle_words + high_words), sizeof(uint64_t));
    uint64_t *middle = low + low_words, *high = middle + middle_words;
    double *total = malloc((size_t)count * sizeof(double) + 1), *values = malloc((size_t)room * sizeof(double));
    INDEX *found = malloc((size_t)room * sizeof(INDEX));
    between_ptr[0] = 0;
    if (!low || !total || !values || !found) end = -1;
    for (int64_t c = 0; c < rows && end >= 0; c++) {
        int64_t length = 0, k = 0;
        for (int64_t p = first[c]; p < first[c + 1]; p++) length += indptr[members[p] + 1] - indptr[members[p]];
        if (length > room) {
            free(found), free(values);
            room = 2 * length;
            found = malloc((size_t)room * sizeof(INDEX)), values = malloc((size_t)room * sizeof(double));
            if (!found || !values) {
                end = -1;
                break;
            }
        }
        const int few = low_words <= length; /* so few words that all are looked at */
        for (int64_t p = first[c]; p < first[c + 1]; p++) {
            const int64_t stop = indptr[members[p] + 1];
            if (few) {
                for (int64_t e = indptr[members[p]]; e < stop; e++) {
                    const INDEX own = labels[indices[e]];
                    if (own == start + c) continue;
                    const uint64_t bit = UINT64_C(1) << (own & 63), before = low[own >> 6];
                    total[own] = (before & bit ? total[own] : 0.0) + data[e];
                    low[own >> 6] = before | bit;
                }
                continue;
            }
            if (p + 16 < n) PREFETCH(&indptr[members[p + 16]]);
            if (p + 8 < n) {
                const int64_t at = indptr[members[p + 8]];
                PREFETCH(&indices[at]), PREFETCH(&data[at]), PREFETCH(&data[at] + 8);
            }
            if (p + 4 < n) {
                const int64_t at = indptr[members[p + 4]], ahead = indptr[members[p + 4] + 1];
                for (int64_t e = at; e < ahead && e < at + AHEAD; e++) PREFETCH(&labels[indices[e]]);
            }
            for (int64_t e = indptr[members[p]]; e < stop; e++) {
                if (e + AHEAD < stop) PREFETCH(&labels[indices[e + AHEAD]]);
                const INDEX own = labels[indices[e]];
                PREFETCH(&total[own]);
                found[k] = own, values[k] = data[e];
                k += own != start + c;
            }
        }
        for (int64_t l = 0; l < k; l++) {
            const int64_t own = found[l], word = own >> 6;
            const uint64_t bit = UINT64_C(1) << (own & 63), before = low[word];
            total[own] = (before & bit ? total[own] : 0.0) + values[l];
            low[word] = before | bit;
            if (before) continue;
            middle[word >> 6] |= UINT64_C(1) << (word & 63);
            high[word >> 12] |= UINT64_C(1) << (word >> 6 & 63);
        }
        for (int64_t word = 0; few && word < low_words; word++) {
            for (uint64_t rest = low[word]; rest; rest &= rest - 1) {
                const int64_t own = 64 * word + lowest_bit(rest);
                between[end] = (INDEX)own, weights[end++] = total[own];
            }
            low[word] = 0;
        }
        for (int64_t h = 0; !few && h < high_words; h++) {
            for (uint64_t some = high[h]; some; some &= some - 1) {
                const int64_t m = 64 * h + lowest_bit(some);
                for (uint64_t more = middle[m]; more; more &= more - 1) {
                    const int64_t word = 64 * m + lowest_bit(more);
                    for (uint64_t rest = low[word]; rest; rest &= rest - 1) {
                        const int64_t own = 64 * word + lowest_bit(rest);
                        between[end] = (INDEX)own, weights[end++] = total[own];
                    }
                    low[word] = 0;
                }
                middle[m] = 0;
            }
            high[h] = 0;
        }
        between_ptr[c + 1] = (INDEX)end;
    }
    free(low), free(total), free(values), free(found);
    return end;
}

void NAME(add_rows)(const INDEX *labels, int64_t n, const double *x, int64_t n_x, int64_t width, double *out,
                    int64_t n_out, int64_t out_width) {
    (void)n_x, (void)n_out, (void)out_width;
    for (int64_t i = 0; i < n; i++)
        for (int64_t t = 0; t < width; t++) out[labels[i] * width + t] += x[i * width + t];
}

/* ---------------------------------------------------------------------------------------- matrices and transposes */

#define TRANSPOSE(FUNCTION, VALUE)                                                                                    \
    void FUNCTION(const INDEX *indptr, int64_t n_ptr, const INDEX *indices, int64_t n_indices, const VALUE *data,     \
                  int64_t n_data, INDEX *out_ptr, int64_t n_out_ptr, INDEX *out_indices, int64_t n_out,               \
                  VALUE *out_data, int64_t n_out_data) {                                                              \
        (void)n_data, (void)n_out, (void)n_out_data;                                                                  \
        memset(out_ptr, 0, (size_t)n_out_ptr * sizeof(INDEX));                                                        \
        for (int64_t e = 0; e < n_indices; e++) out_ptr[indices[e] + 1]++;                                            \
        for (int64_t j = 1; j < n_out_ptr; j++) out_ptr[j] += out_ptr[j - 1];                                         \
        for (int64_t i = 0; i + 1 < n_ptr; i++)                                                                       \
            for (int64_t e = indptr[i]; e < indptr[i + 1]; e++) {                                                     \
                if (e + 2 * AHEAD < n_indices) PREFETCH(&out_ptr[indices[e + 2 * AHEAD]]);                            \
                if (e + AHEAD < n_indices) {                                                                          \
                    const int64_t ahead = out_ptr[indices[e + AHEAD]];                                                \
                    PREFETCH(&out_indices[ahead]), PREFETCH(&out_data[ahead]);                                        \
                }                                                                                                     \
                const int64_t at = out_ptr[indices[e]]++;                                                             \
                out_indices[at] = (INDEX)i, out_data[at] = data[e];                                                   \
            }                                                                                                         \
        for (int64_t j = n_out_ptr - 1; j > 0; j--) out_ptr[j] = out_ptr[j - 1];                                      \
        out_ptr[0] = 0;                                                                                               \
    }

TRANSPOSE(NAME2(transpose, u8), uint64_t)
TRANSPOSE(NAME2(transpose, u4), uint32_t)

int64_t NAME(merge_rows)(const INDEX *indptr, int64_t n_ptr, const INDEX *indices, int64_t n_indices,
                         const double *data, int64_t n_data, const INDEX *other_ptr, int64_t n_other_ptr,
                         const INDEX *other, int64_t n_other, const double *other_data, int64_t n_other_data,
                         int64_t largest, INDEX *out_ptr, int64_t n_out_ptr, INDEX *out, int64_t n_out,
                         double *out_data, int64_t n_out_data) {
    (void)n_indices, (void)n_data, (void)n_other_ptr, (void)n_other, (void)n_other_data;
    (void)n_out_ptr, (void)n_out, (void)n_out_data;
    int64_t end = 0;
    out_ptr[0] = 0;
    for (int64_t i = 0; i + 1 < n_ptr; i++) {
        int64_t e = indptr[i], f = other_ptr[i];
        while (e < indptr[i + 1] || f < other_ptr[i + 1]) {
            const int mine = f >= other_ptr[i + 1] || (e < indptr[i + 1] && indices[e] <= other[f]);
            const int theirs = e >= indptr[i + 1] || (f < other_ptr[i + 1] && other[f] <= indices[e]);
            const double a = mine ? data[e] : 0.0, b = theirs ? other_data[f] : 0.0;
            out[end] = mine ? indices[e] : other[f];
            out_data[end++] = largest ? (a > b ? a : b) : a + b;
            e += mine, f += theirs;
        }
        out_ptr[i + 1] = (INDEX)end;
    }
    return end;
}

int64_t NAME(drop_loops)(INDEX *indptr, int64_t n_ptr, INDEX *indices, int64_t n_indices, double *data,
                         int64_t n_data) {
    (void)n_indices, (void)n_data;
    int64_t end = 0, start = indptr[0];
    for (int64_t i = 0; i + 1 < n_ptr; i++) {
        const int64_t stop = indptr[i + 1];
        for (int64_t e = start; e < stop; e++) {
            if (indices[e] == i || data[e] == 0.0) continue;
            indices[end] = indices[e], data[end++] = data[e];
        }
        indptr[i + 1] = (INDEX)end;
        start = stop;
    }
    return end;
}

/* ---------------------------------------------------------------------------------------------------- channels */

void NAME(sums)(const INDEX *indptr, int64_t n_ptr, const double *data, int64_t n_data, double *out, int64_t n_out) {
    (void)n_data, (void)n_out;
    for (int64_t i = 0; i + 1 < n_ptr; i++) {
        const int64_t start = indptr[i], stop = indptr[i + 1];
        double largest = 0.0;
        for (int64_t e = start; e < stop; e++) largest = fabs(data[e]) > largest ? fabs(data[e]) : largest;
        if (!(largest < INFINITY)) {
            out[i] = largest;
            continue;
        }
        double half, rest;
        units(stop - start, largest, &half, &rest);
        int64_t total = 0;
        for (int64_t e = start; e < stop; e++) total += llrint(data[e] * half * rest);
        out[i] = (double)total / half / rest;
    }
}

int64_t NAME(order_free_product)(const INDEX *indptr, int64_t n_ptr, const INDEX *indices, int64_t n_indices,
                                 const double *data, int64_t n_data, const double *x, int64_t n_x, int64_t width,
                                 double *out, int64_t n_out, int64_t out_width) {
    (void)n_indices, (void)n_data, (void)n_x, (void)n_out, (void)out_width;
    double *largest = malloc((size_t)width * 3 * sizeof(double) + 1), *half = largest + width, *rest = half + width;
    int64_t *total = malloc((size_t)width * sizeof(int64_t) + 1);
    const int64_t found = largest && total ? 0 : -1;
    for (int64_t i = 0; i + 1 < n_ptr && !found; i++) {
        const int64_t start = indptr[i], stop = indptr[i + 1];
        for (int64_t t = 0; t < width; t++) largest[t] = 0.0, total[t] = 0;
        for (int64_t e = start; e < stop; e++)
            for (int64_t t = 0; t < width; t++) {
                const double size = fabs(data[e] * x[indices[e] * width + t]);
                largest[t] = size > largest[t] ? size : largest[t];
            }
        for (int64_t t = 0; t < width; t++) {
            half[t] = rest[t] = 0.0; /* infinite sums are told by their largest term */
            if (largest[t] < INFINITY) units(stop - start, largest[t], &half[t], &rest[t]);
        }
        for (int64_t e = start; e < stop; e++)
            for (int64_t t = 0; t < width; t++)
                if (largest[t] < INFINITY) total[t] += llrint(data[e] * x[indices[e] * width + t] * half[t] * rest[t]);
        for (int64_t t = 0; t < width; t++)
            out[i * width + t] = largest[t] < INFINITY ? (double)total[t] / half[t] / rest[t] : largest[t];
    }
    free(largest), free(total);
    return found;
}

void NAME(divide_rows)(const INDEX *indptr, int64_t n_ptr, const INDEX *indices, int64_t n_indices,
                       const double *data, int64_t n_data, const double *degree, int64_t n_degree, int64_t both,
                       double *out, int64_t n_out) {
    (void)n_data, (void)n_degree, (void)n_out;
    for (int64_t i = 0; i + 1 < n_ptr; i++)
        for (int64_t e = indptr[i]; e < indptr[i + 1]; e++) {
            if (both && e + AHEAD < n_indices) PREFETCH(&degree[indices[e + AHEAD]]);
            out[e] = data[e] / (both ? degree[i] * degree[indices[e]] : degree[i]);
        }
}

void NAME(count_terms)(const INDEX *indptr, int64_t n_ptr, const INDEX *indices, int64_t n_indices,
                       const int64_t *terms, int64_t n_terms, int64_t most, int64_t *out, int64_t n_out) {
    (void)n_terms, (void)n_out;
    for (int64_t i = 0; i + 1 < n_ptr; i++) {
        int64_t total = 0;
        for (int64_t e = indptr[i]; e < indptr[i + 1]; e++) {
            if (e + AHEAD < n_indices) PREFETCH(&terms[indices[e + AHEAD]]);
            total += terms[indices[e]];
        }
        out[i] = total < most ? total : most;
    }
}
