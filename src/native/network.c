/* The network: which processor's loops run, the masks of dropout, and the losses. */
#include "common.h"
#include "network.h"

typedef struct {
    const char *name;
    void (*forward)(network *);
    void (*masked)(network *);
    void (*step)(network *, const network_rates *);
} kind;

#define KIND(NAME) {#NAME, network_forward_##NAME, network_masked_##NAME, network_step_##NAME}
static const kind PORTABLE = KIND(portable);
#if defined(__x86_64__) && !defined(_MSC_VER)
static const kind AVX2 = KIND(avx2), AVX512 = KIND(avx512);
#endif

static const kind *chosen(const char *name) {
#if defined(__x86_64__) && !defined(_MSC_VER)
    __builtin_cpu_init();
    int fused = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    int wide = fused && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
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

/* Four bits: which of the four parts of 16 bits are at least the threshold. */
ALWAYS_INLINE uint64_t at_least(uint64_t x, uint64_t thresholds) {
    const uint64_t high = UINT64_C(0x8000800080008000);
    uint64_t low = (x | high) - (thresholds & ~high);
    uint64_t ge = ((x & ~thresholds) | (~(x ^ thresholds) & low)) & high;
    return (ge >> 15) * UINT64_C(0x0001000200040008) >> 48 & 15;
}

/* The entries that dropout keeps, a bit each: those whose 16 random bits are at least the threshold. The entries of all
   rows are numbered through, as `keep_mask` of pegfan/_products.py has them; a row begins with a word of its own. */
void network_draw(uint64_t seed, uint64_t threshold, int64_t rows, int64_t hidden, int64_t words, uint64_t *bits) {
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

/* α = softmax(a), the logits c + Σ α_i Z_i, and the losses of training and validation rows; error becomes the gradient
   of the first. */
void network_losses(network *net, double *out) {
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
    out[0] = out[1] = 0;
    for (int64_t r = 0; r < net->rows; r++) {
        const float *row = net->logits + r * classes;
        float *error = r < net->train ? net->error + r * classes : 0;
        double weight = net->weights[r], *loss = out + (r >= net->train);
        if (net->numeric) {
            double gap = (double)row[0] - net->targets[r];
            *loss += weight * gap * gap;
            if (error) error[0] = (float)(2 * weight * gap);
            continue;
        }
        float most = row[0];
        double sum = 0;
        for (int64_t k = 1; k < classes; k++) most = row[k] > most ? row[k] : most;
        for (int64_t k = 0; k < classes; k++) {
            double e = power((double)row[k] - most);
            sum += e;
            if (error) error[k] = (float)e;
        }
        *loss -= weight * ((double)row[net->labels[r]] - most - log(sum));
        if (!error) continue;
        float by = (float)(weight / sum);
        for (int64_t k = 0; k < classes; k++) error[k] *= by;
        error[net->labels[r]] -= (float)weight;
    }
}
