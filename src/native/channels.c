/* Loops of channels; their declarations are in pegfan/channels. */
#include "common.h"

/* Entries ahead whose lines are asked for: enough of them on their way to hide that memory is far. */
enum { AHEAD = 32 };

/* Two factors, powers of two, that make integers of a sum's terms: in two parts, for one alone may overflow. */
ALWAYS_INLINE void units(int64_t terms, double largest, double *half, double *rest) {
    int spare, size;
    frexp((double)terms, &spare);
    frexp(largest, &size);
    const int power = 62 - spare - size, low = power >= 0 ? power / 2 : -((1 - power) / 2);
    *half = ldexp(1.0, low), *rest = ldexp(1.0, power - low);
}

#define INDEX int32_t
#define NAME(function) function##__i4
#include "channels.inc"
#define INDEX int64_t
#define NAME(function) function##__i8
#include "channels.inc"
