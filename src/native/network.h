/* The loops of the network for one kind of processor, see network.inc. */
#ifndef PEGFAN_NETWORK_H
#define PEGFAN_NETWORK_H

#include "common.h"

typedef struct {
    void (*forward)(const network *net);
    void (*step)(const network *net);
    __typeof__(rows_forward) *rows_forward;
    __typeof__(rows_back) *rows_back;
    __typeof__(adam_step) *adam_step;
} network_loops;

extern const network_loops network_portable, network_avx2, network_avx512;

/* What dropout keeps of channel i in the backward pass of step + 1: a bit per hidden unit of the training rows; 0 where
   it keeps all. The forward pass of one step and the backward pass of the next have the same masks, so that two sets of
   them are there at a time. */
ALWAYS_INLINE const uint64_t *network_masks(const network *net, int64_t i, int64_t step) {
    int64_t words = (net->lines + 3) / 4;
    return net->masks ? net->masks + ((step % 2) * net->channels + i) * net->train * words : 0;
}

#endif
