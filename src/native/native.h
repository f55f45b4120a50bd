/* What Python calls (see pegfan/_compiled.py); cffi reads this file, so it holds declarations and nothing else. */

/* hashing.c */
void mix_all(const uint64_t *values, int64_t n, uint64_t *out, int64_t n_out);
void hash_rows__i4_i4(const int32_t *indptr, int64_t n_ptr, const int32_t *indices, int64_t n_indices,
                      const uint64_t *bits, int64_t n_bits, int64_t with_self, uint64_t *out, int64_t n_out);
void hash_rows__i8_i8(const int64_t *indptr, int64_t n_ptr, const int64_t *indices, int64_t n_indices,
                      const uint64_t *bits, int64_t n_bits, int64_t with_self, uint64_t *out, int64_t n_out);
void hash_rows__i8_i4(const int64_t *indptr, int64_t n_ptr, const int32_t *indices, int64_t n_indices,
                      const uint64_t *bits, int64_t n_bits, int64_t with_self, uint64_t *out, int64_t n_out);

/* reading.c */
int64_t look_through(const uint8_t *codes, int64_t n, int64_t start, int64_t delimiter, uint8_t *found,
                     int64_t n_found);
int64_t cut_cells(const uint8_t *block, int64_t n, int64_t delimiter, int64_t quoted, const uint8_t *wanted,
                  int64_t width, int32_t *begins, int64_t n_begins, int32_t *ends, int64_t n_ends, int64_t *state,
                  int64_t n_state);
void place_texts(const uint8_t *texts, int64_t n_texts, const int64_t *starts, int64_t n_starts, int64_t count,
                 uint64_t seed, uint64_t *slots, int64_t n_slots);
int64_t number_texts__i4(const uint8_t *data, int64_t n_data, const int32_t *begins, int64_t n_begins,
                         const int32_t *ends, int64_t n_ends, int64_t first, uint64_t seed, uint64_t *slots,
                         int64_t n_slots, uint8_t *texts, int64_t n_texts, int64_t *starts, int64_t n_starts,
                         int32_t *codes, int64_t n_codes);
int64_t number_texts__i8(const uint8_t *data, int64_t n_data, const int64_t *begins, int64_t n_begins,
                         const int64_t *ends, int64_t n_ends, int64_t first, uint64_t seed, uint64_t *slots,
                         int64_t n_slots, uint8_t *texts, int64_t n_texts, int64_t *starts, int64_t n_starts,
                         int32_t *codes, int64_t n_codes);
void text_keys(const uint8_t *texts, int64_t n_texts, const int64_t *starts, int64_t n_starts, const int64_t *rows,
               int64_t n_rows, int64_t depth, uint64_t *keys, int64_t n_keys);
void spread_texts(const uint8_t *texts, int64_t n_texts, const int64_t *starts, int64_t n_starts, const int64_t *codes,
                  int64_t n_codes, uint32_t *out, int64_t n_out, int64_t width);
void copy_texts(const uint8_t *texts, int64_t n_texts, const int64_t *starts, int64_t n_starts, const int64_t *codes,
                int64_t n_codes, uint8_t *out, int64_t n_out);
void take_all(const int32_t *values, int64_t n_values, const int32_t *places, int64_t n_places, int32_t *out,
              int64_t n_out);

/* pairs.c */
void pack_pairs__i4(const int32_t *first, int64_t n_first, const int32_t *second, int64_t n_second, int64_t bits,
                    int64_t both, uint64_t *keys, int64_t n_keys);
void pack_pairs__i8(const int64_t *first, int64_t n_first, const int64_t *second, int64_t n_second, int64_t bits,
                    int64_t both, uint64_t *keys, int64_t n_keys);
int64_t drop_repeats(uint64_t *keys, int64_t m);
int64_t count_loops(const uint64_t *keys, int64_t m, int64_t bits);
void fill_rows__i4(const uint64_t *keys, int64_t m, int64_t bits, int64_t both, const double *weights,
                   int64_t n_weights, int32_t *indptr, int64_t n_ptr, int32_t *indices, int64_t n_indices,
                   double *data, int64_t n_data, int32_t *next, int64_t n_next);
void fill_rows__i8(const uint64_t *keys, int64_t m, int64_t bits, int64_t both, const double *weights,
                   int64_t n_weights, int64_t *indptr, int64_t n_ptr, int64_t *indices, int64_t n_indices,
                   double *data, int64_t n_data, int64_t *next, int64_t n_next);
