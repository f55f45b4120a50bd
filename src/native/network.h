/* The network for each kind of processor, see network.inc and head.inc. */
#define NETWORK(KIND)                                                                                                \
    void network_forward_##KIND(network *net);                                                                       \
    void network_masked_##KIND(network *net);                                                                        \
    void network_step_##KIND(network *net, const network_rates *rates);                                              \
    void head_normalize_##KIND(float *H, int64_t rows, int64_t width, const float *bias, int wanted, float *inverse); \
    void head_logits_##KIND(const float *H, int64_t channels, int64_t all, int64_t width, const float *alpha,        \
                            const float *V, int64_t classes, const uint8_t *masks, int64_t masked, float scale,      \
                            int64_t start, const float *bias, float *logits, int64_t rows);                          \
    float head_backward_##KIND(const float *H, const float *inverse, int64_t width, int normalized, float alpha,     \
                               const float *V, int64_t classes, const uint8_t *mask, float scale,                    \
                               const float *error, int64_t rows, float *gradient, float *grad_V, float *grad_b);     \
    void head_adam_##KIND(float *w, float *m, float *v, const float *g, int64_t n, double step, double decay,        \
                          double root);

NETWORK(portable)
NETWORK(avx2)
NETWORK(avx512)
