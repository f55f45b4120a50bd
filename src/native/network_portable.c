/* The network for all other processors. */
#include "network.inc"
#include "head.inc"
