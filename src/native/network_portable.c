/* The network for all other processors. */
#define LOOPS network_portable
#include "network.inc"
