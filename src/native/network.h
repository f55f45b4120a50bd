/* The network for each kind of processor, see network.inc. */
#define NETWORK(KIND)                                                                                                \
    void network_forward_##KIND(network *net);                                                                       \
    void network_masked_##KIND(network *net);                                                                        \
    void network_step_##KIND(network *net, const network_rates *rates);

NETWORK(portable)
NETWORK(avx2)
NETWORK(avx512)
