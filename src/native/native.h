/* What Python calls (see pegfan/_compiled.py); cffi reads this file, so it holds declarations and nothing else. */

/* hashing.c */
void mix_all(const uint64_t *values, int64_t n, uint64_t *out, int64_t n_out);
void hash_rows__i4_i4(const int32_t *indptr, int64_t n_ptr, const int32_t *indices, int64_t n_indices,
                      const uint64_t *bits, int64_t n_bits, int64_t with_self, uint64_t *out, int64_t n_out);
void hash_rows__i8_i8(const int64_t *indptr, int64_t n_ptr, const int64_t *indices, int64_t n_indices,
                      const uint64_t *bits, int64_t n_bits, int64_t with_self, uint64_t *out, int64_t n_out);
void hash_rows__i8_i4(const int64_t *indptr, int64_t n_ptr, const int32_t *indices, int64_t n_indices,
                      const uint64_t *bits, int64_t n_bits, int64_t with_self, uint64_t *out, int64_t n_out);
