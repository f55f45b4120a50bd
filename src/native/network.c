/* The network: which processor's loops run, the masks of dropout, and the losses. */
#include "common.h"
#include "cpu.h"
#include "network.h"

typedef struct {
    const char *name;
    void (*forward)(network *);
    void (*masked)(network *);
    void (*step)(network *, const network_rates *);
    void (*normalize)(float *, int64_t, int64_t, const float *, int, float *);
    void (*logits)(const float *, int64_t, int64_t, int64_t, const float *, const float *, int64_t, const uint8_t *,
                   int64_t, float, int64_t, const float *, float *, int64_t);
    float (*backward)(const float *, const float *, int64_t, int, float, const float *, int64_t, const uint8_t *, float,
                      const float *, int64_t, float *, float *, float *);
    void (*adam)(float *, float *, float *, const float *, int64_t, double, double, double);
} kind;

#define KIND(NAME)                                                                                                   \
    {#NAME,                 network_forward_##NAME, network_masked_##NAME, network_step_##NAME,                      \
     head_normalize_##NAME, head_logits_##NAME,     head_backward_##NAME,  head_adam_##NAME}
static const kind PORTABLE = KIND(portable);
#if defined(__x86_64__) && !defined(_MSC_VER)
static const kind AVX2 = KIND(avx2), AVX512 = KIND(avx512);
#endif

static const kind *chosen(const char *name) {
#if defined(__x86_64__) && !defined(_MSC_VER)
    int fused = cpu_has(CPU_AVX2 | CPU_FMA);
    int wide = fused && cpu_has(CPU_AVX512F | CPU_AVX512VL);
    if (wide && (!name || !strcmp(name, AVX512.name))) return &AVX512;
    if (fused && (!name || !strcmp(name, AVX2.name))) return &AVX2;
#endif
    return !name || !strcmp(name, PORTABLE.name) ? &PORTABLE : 0;
}

static const kind *current = 0;

static const kind *use(void) {
    if (!current) current = chosen(0);
    return current;
}

const char *network_processor(void) { return use()->name; }

/* Use the loops for another kind of processor; whether this machine can run them. */
int64_t network_use(const char *processor) {
    const kind *found = chosen(processor);
    if (found) current = found;
    return found != 0;
}

void network_forward(network *net) { use()->forward(net); }
void network_masked(network *net) { use()->masked(net); }
void network_step(network *net, const network_rates *rates) { use()->step(net, rates); }

void normalize(float *H, int64_t rows, int64_t width, const float *bias, int64_t n_bias, int64_t wanted, float *inverse,
               int64_t n_inverse) {
    (void)n_bias, (void)n_inverse;
    use()->normalize(H, rows, width, bias, wanted != 0, inverse);
}

void compute_logits(const float *H, int64_t channels, int64_t all, int64_t width, const float *alpha, int64_t n_alpha,
                    const float *V, int64_t channels_V, int64_t classes, int64_t width_V, const uint8_t *masks,
                    int64_t channels_masks, int64_t masked, int64_t width_masks, double scale, int64_t start,
                    const float *c, int64_t n_c, float *logits, int64_t rows, int64_t n_logits) {
    (void)n_alpha, (void)channels_V, (void)width_V, (void)channels_masks, (void)n_c, (void)n_logits;
    use()->logits(H, channels, all, width, alpha, V, classes, masked && width_masks ? masks : 0, masked, (float)scale,
                  start, c, logits, rows);
}

double backward(const float *H, int64_t all, int64_t width, const float *inverse, int64_t n_inverse, int64_t normalized,
                double alpha, const float *V, int64_t classes, int64_t width_V, const uint8_t *mask, int64_t rows_mask,
                int64_t width_mask, double scale, const float *error, int64_t rows, int64_t classes_error,
                float *gradient, int64_t rows_gradient, int64_t width_gradient, float *grad_V, int64_t classes_grad,
                int64_t width_grad, float *grad_b, int64_t n_grad) {
    (void)all, (void)n_inverse, (void)width_V, (void)classes_error, (void)rows_gradient, (void)width_gradient;
    (void)classes_grad, (void)width_grad, (void)n_grad;
    return use()->backward(H, inverse, width, normalized != 0, (float)alpha, V, classes,
                           rows_mask && width_mask ? mask : 0, (float)scale, error, rows, gradient, grad_V, grad_b);
}

void attention_gradient(const float *alpha, int64_t n, const float *by_alpha, int64_t n_by, float *out, int64_t n_out) {
    (void)n_by, (void)n_out;
    float inner = 0;
    for (int64_t i = 0; i < n; i++) inner += alpha[i] * by_alpha[i];
    for (int64_t i = 0; i < n; i++) out[i] = alpha[i] * (by_alpha[i] - inner);
}

void adam_step(float *w, int64_t n, float *m, int64_t n_m, float *v, int64_t n_v, const float *g, int64_t n_g,
               double step, double decay, double root) {
    (void)n_m, (void)n_v, (void)n_g;
    use()->adam(w, m, v, g, n, step, decay, root);
}

/* Four bits: which of the four parts of 16 bits are at least the threshold. */
ALWAYS_INLINE uint64_t at_least(uint64_t x, uint64_t thresholds) {
    const uint64_t high = UINT64_C(0x8000800080008000);
    uint64_t low = (x | high) - (thresholds & ~high);
    uint64_t ge = ((x & ~thresholds) | (~(x ^ thresholds) & low)) & high;
    return (ge >> 15) * UINT64_C(0x0001000200040008) >> 48 & 15;
}

/* The entries that dropout keeps, a bit each: those whose 16 random bits are at least the threshold. The entries of all
   rows are numbered through, as `keep_mask` of pegfan/_products.py has them; a row begins with a word of its own. */
WIDE void network_draw(uint64_t seed, uint64_t threshold, int64_t rows, int64_t hidden, int64_t words, uint64_t *bits) {
    seed += UINT64_C(0x9E3779B97F4A7C15);
    int half = threshold == 32768;
    uint64_t thresholds = threshold * UINT64_C(0x0001000100010001), have = 0, block = 0;
    int left = 0, each = half ? 64 : 4; /* random bits that are left of the last block, and how many a block gives */
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < words; k++) {
            int64_t wanted = hidden - 64 * k < 64 ? hidden - 64 * k : 64, got = 0;
            uint64_t word = 0;
            while (got < wanted) {
                if (!left) {
                    uint64_t random = mix(seed + block++);
                    have = half ? random : at_least(random, thresholds), left = each;
                }
                int64_t take = wanted - got < left ? wanted - got : left;
                uint64_t part = take < 64 ? have & ((UINT64_C(1) << take) - 1) : have;
                word |= part << got, got += take, left -= (int)take;
                have = take < 64 ? have >> take : 0;
            }
            bits[r * words + k] = word;
        }
}

/* e^x to 2^-40, for x ≤ 0: the same bits on every machine, which libraries do not promise. */
ALWAYS_INLINE double power(double x) {
    if (x < -700) return 0;
    static const double C[] = {1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120,
                               1.0 / 24,      1.0 / 6,      0.5,         1,          1};
    double n = floor(x * 1.4426950408889634 + 0.5), r = x - n * 0.6931471805599453, y = C[0];
    for (int k = 1; k < 11; k++) y = y * r + C[k];
    union {
        uint64_t bits;
        double value;
    } two = {(uint64_t)(1023 + (int64_t)n) << 52};
    return y * two.value;
}

WIDE double cross_entropy(const float *logits, int64_t rows, int64_t classes, const int64_t *labels, int64_t n_labels,
                     const float *weights, int64_t n_weights, float *error, int64_t rows_error, int64_t classes_error) {
    (void)n_labels, (void)n_weights;
    int wanted = rows_error * classes_error > 0;
    double loss = 0;
    for (int64_t r = 0; r < rows; r++) {
        const float *row = logits + r * classes;
        float most = row[0], *to = error + r * classes;
        double sum = 0;
        for (int64_t k = 1; k < classes; k++) most = row[k] > most ? row[k] : most;
        for (int64_t k = 0; k < classes; k++) {
            double e = power((double)row[k] - most);
            sum += e;
            if (wanted) to[k] = (float)e;
        }
        loss -= weights[r] * ((double)row[labels[r]] - most - log(sum));
        if (!wanted) continue;
        float by = (float)(weights[r] / sum);
        for (int64_t k = 0; k < classes; k++) to[k] *= by;
        to[labels[r]] -= weights[r];
    }
    return loss;
}

double squared_error(const float *outputs, int64_t rows, int64_t columns, const float *targets, int64_t n_targets,
                     const float *weights, int64_t n_weights, float *error, int64_t rows_error, int64_t columns_error) {
    (void)columns, (void)n_targets, (void)n_weights;
    int wanted = rows_error * columns_error > 0;
    double loss = 0;
    for (int64_t r = 0; r < rows; r++) {
        double gap = (double)outputs[r] - targets[r];
        loss += weights[r] * gap * gap;
        if (wanted) error[r] = (float)(2 * weights[r] * gap);
    }
    return loss;
}

/* α = softmax(a), the logits c + Σ α_i Z_i, and the losses of training and validation rows; error becomes the gradient
   of the first. */
WIDE void network_losses(network *net, double *out) {
    int64_t classes = net->classes, entries = net->rows * classes;
    const float *a = net->w + net->rest[3], *c = net->w + net->rest[2];
    float top = a[0];
    double total = 0;
    for (int64_t i = 1; i < net->channels; i++) top = a[i] > top ? a[i] : top;
    for (int64_t i = 0; i < net->channels; i++) total += power((double)a[i] - top);
    for (int64_t i = 0; i < net->channels; i++) net->alpha[i] = (float)(power((double)a[i] - top) / total);
    for (int64_t r = 0; r < net->rows; r++)
        for (int64_t k = 0; k < classes; k++) net->logits[r * classes + k] = c[k];
    for (int64_t i = 0; i < net->channels; i++) {
        const float *z = net->Z + i * entries;
        for (int64_t t = 0; t < entries; t++) net->logits[t] += net->alpha[i] * z[t];
    }
    int64_t train = net->train * classes, later = net->rows - net->train;
    if (net->numeric) {
        out[0] = squared_error(net->logits, net->train, 1, net->targets, net->train, net->weights, net->train,
                               net->error, net->train, 1);
        out[1] = squared_error(net->logits + train, later, 1, net->targets + net->train, later,
                               net->weights + net->train, later, net->error, 0, 0);
        return;
    }
    out[0] = cross_entropy(net->logits, net->train, classes, net->labels, net->train, net->weights, net->train,
                           net->error, net->train, classes);
    out[1] = cross_entropy(net->logits + train, later, classes, net->labels + net->train, later,
                           net->weights + net->train, later, net->error, 0, 0);
}
