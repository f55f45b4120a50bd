/* The network: which processor's loops run, the masks of dropout, and the losses; declared in pegfan/training. */
#include "cpu.h"
#include "network.h"

/* The loops for a kind of processor (0 for all, 1 for those with AVX2, 2 for those with AVX-512), if this one can run
   them. */
static const network_loops *loops_for(int64_t kind) {
#if defined(__x86_64__) && !defined(_MSC_VER)
    if (kind == 1 && cpu_has(CPU_AVX2 | CPU_FMA)) return &network_avx2;
    if (kind == 2 && cpu_has(CPU_AVX2 | CPU_FMA | CPU_AVX512F | CPU_AVX512VL)) return &network_avx512;
#endif
    return kind == 0 ? &network_portable : 0;
}

static const network_loops *current = 0;

static const network_loops *loops(void) {
    const network_loops *best = current; /* other threads may look at the same time */
    for (int64_t kind = 2; !best; kind--) best = loops_for(kind);
    return current = best;
}

int64_t network_processor(void) {
    int64_t kind = 2;
    while (loops_for(kind) != loops()) kind--;
    return kind;
}

int64_t network_use(int64_t kind) {
    const network_loops *chosen = loops_for(kind);
    if (chosen) current = chosen;
    return chosen != 0;
}

void rows_forward(int64_t lines, float *H, int64_t rows, const float *bias, int64_t normalized, float *inverse,
                  const float *V, int64_t classes, double by, const uint64_t *bits, float *scratch, float *Z) {
    loops()->rows_forward(lines, H, rows, bias, normalized, inverse, V, classes, by, bits, scratch, Z);
}

double rows_back(int64_t lines, const float *H, int64_t rows, const float *inverse, int64_t normalized, double alpha,
                 const float *V, int64_t classes, const uint64_t *bits, double scale, const float *error,
                 float *scratch, float *gradient, float *grad_V, float *grad_b) {
    return loops()->rows_back(lines, H, rows, inverse, normalized, alpha, V, classes, bits, scale, error, scratch,
                              gradient, grad_V, grad_b);
}

void adam_step(int64_t lines, float *w, float *m, float *v, const float *g, double rate, double decay, int64_t steps) {
    loops()->adam_step(lines, w, m, v, g, rate, decay, steps);
}

void attention_gradient(const float *alpha, int64_t n, const float *by_alpha, float *out) {
    float inner = 0;
    for (int64_t i = 0; i < n; i++) inner += alpha[i] * by_alpha[i];
    for (int64_t i = 0; i < n; i++) out[i] = alpha[i] * (by_alpha[i] - inner);
}

/* Four bits: which of the four parts of 16 bits are at least the threshold. */
ALWAYS_INLINE uint64_t at_least(uint64_t x, uint64_t thresholds) {
    const uint64_t high = UINT64_C(0x8000800080008000);
    uint64_t low = (x | high) - (thresholds & ~high);
    uint64_t ge = ((x & ~thresholds) | (~(x ^ thresholds) & low)) & high;
    return (ge >> 15) * UINT64_C(0x0001000200040008) >> 48 & 15;
}

/* The entries that dropout keeps, a bit each: those whose 16 random bits are at least the threshold. The entries of all
   rows are numbered through, as `keep_mask` of pegfan/_products.py numbers them; a row begins with a word of its own. */
WIDE void draw_masks(uint64_t seed, uint64_t threshold, int64_t hidden, uint64_t *bits, int64_t rows, int64_t words) {
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

WIDE double cross_entropy(const float *logits, int64_t rows, int64_t classes, const int64_t *labels,
                          const float *weights, float *error) {
    double loss = 0;
    for (int64_t r = 0; r < rows; r++) {
        const float *row = logits + r * classes;
        float most = row[0], *to = error + r * classes;
        double sum = 0;
        for (int64_t k = 1; k < classes; k++) most = row[k] > most ? row[k] : most;
        for (int64_t k = 0; k < classes; k++) {
            double e = power((double)row[k] - most);
            sum += e;
            if (error) to[k] = (float)e;
        }
        loss -= weights[r] * ((double)row[labels[r]] - most - log(sum));
        if (!error) continue;
        float by = (float)(weights[r] / sum);
        for (int64_t k = 0; k < classes; k++) to[k] *= by;
        to[labels[r]] -= weights[r];
    }
    return loss;
}

double squared_error(const float *outputs, int64_t rows, const float *targets, const float *weights, float *error) {
    double loss = 0;
    for (int64_t r = 0; r < rows; r++) {
        double gap = (double)outputs[r] - targets[r];
        loss += weights[r] * gap * gap;
        if (error) error[r] = (float)(2 * weights[r] * gap);
    }
    return loss;
}

/* The loss of the rows from first on; error becomes its gradient, unless it is 0. */
static double loss_of(const network *net, int64_t first, int64_t rows, float *error) {
    const float *logits = net->logits + first * net->classes, *weights = net->weights + first;
    if (net->targets) return squared_error(logits, rows, net->targets + first, weights, error);
    return cross_entropy(logits, rows, net->classes, net->labels + first, weights, error);
}

/* α = softmax(a), the logits c + Σ α_i Z_i, and the losses of training and validation rows; error becomes the gradient
   of the first. */
WIDE static void find_losses(const network *net, double *losses) {
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
    losses[0] = loss_of(net, 0, net->train, net->error);
    losses[1] = loss_of(net, net->train, net->rows - net->train, 0);
}

static void draw_next(const network *net, uint64_t seed) {
    int64_t words = (net->lines + 3) / 4, rows = net->channels * net->train;
    if (net->masks)
        draw_masks(seed, net->threshold, net->hidden, net->masks + net->steps % 2 * rows * words, rows, words);
}

void network_begin(network *net, uint64_t seed, double *losses) {
    draw_next(net, seed);
    loops()->forward(net);
    find_losses(net, losses);
}

void network_step(network *net, uint64_t seed, double *losses) {
    net->steps++;
    draw_next(net, seed);
    loops()->step(net);
    find_losses(net, losses);
}
