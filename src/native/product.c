/* Products of sparse matrices with dense ones; they are declared in pegfan/_products.py. Every sum is taken entry by
   entry and every product is rounded, as SciPy does it: the same bits, on every machine. */
#include "common.h"

enum { AHEAD = 12 }; /* entries: how far ahead rows are asked for, as scattered ones are far away */

#if defined(__GNUC__) /* halves of cache lines: more, gcc keeps in memory */
typedef float half__f4 __attribute__((vector_size(32), aligned(4)));
typedef double half__f8 __attribute__((vector_size(32), aligned(8)));
#endif

#define PTR int32_t
#define INDEX int32_t
#define NUMBER float
#define HALF half__f4
#define NAME sparse_product__i4_i4_f4
#include "product.inc"
#define PTR int32_t
#define INDEX int32_t
#define NUMBER double
#define HALF half__f8
#define NAME sparse_product__i4_i4_f8
#include "product.inc"
#define PTR int32_t
#define INDEX int64_t
#define NUMBER float
#define HALF half__f4
#define NAME sparse_product__i4_i8_f4
#include "product.inc"
#define PTR int32_t
#define INDEX int64_t
#define NUMBER double
#define HALF half__f8
#define NAME sparse_product__i4_i8_f8
#include "product.inc"
#define PTR int64_t
#define INDEX int32_t
#define NUMBER float
#define HALF half__f4
#define NAME sparse_product__i8_i4_f4
#include "product.inc"
#define PTR int64_t
#define INDEX int32_t
#define NUMBER double
#define HALF half__f8
#define NAME sparse_product__i8_i4_f8
#include "product.inc"
#define PTR int64_t
#define INDEX int64_t
#define NUMBER float
#define HALF half__f4
#define NAME sparse_product__i8_i8_f4
#include "product.inc"
#define PTR int64_t
#define INDEX int64_t
#define NUMBER double
#define HALF half__f8
#define NAME sparse_product__i8_i8_f8
#include "product.inc"
