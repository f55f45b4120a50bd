/* Dropout and attention over neighbours; the loops are declared in pegfan/models/_kernels.py. */
#include "common.h"

enum { LANES = 8 }; /* partial sums of a dot product, so that a processor can add them side by side in one order */
enum { AHEAD = 4 }; /* neighbours whose rows are asked for before they are needed */

#define T float
#define EXP expf
#define NAME(function) function##__f4
#include "models.inc"
#define T double
#define EXP exp
#define NAME(function) function##__f8
#include "models.inc"
