/* What Python calls (see pegfan/_compiled.py); cffi reads this file, so it holds declarations and nothing else. */

/* hashing.c */
void keep_entries(uint64_t seed, uint64_t threshold, uint8_t *mask, int64_t n);

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
void find_texts__i4(const uint8_t *data, int64_t n_data, const int32_t *begins, int64_t n_begins, const int32_t *ends,
                    int64_t n_ends, uint64_t seed, const uint64_t *slots, int64_t n_slots, const uint8_t *texts,
                    int64_t n_texts, const int64_t *starts, int64_t n_starts, int32_t *codes, int64_t n_codes);
void find_texts__i8(const uint8_t *data, int64_t n_data, const int64_t *begins, int64_t n_begins, const int64_t *ends,
                    int64_t n_ends, uint64_t seed, const uint64_t *slots, int64_t n_slots, const uint8_t *texts,
                    int64_t n_texts, const int64_t *starts, int64_t n_starts, int32_t *codes, int64_t n_codes);
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

/* framelets.c */
void frame_decompose__f4(const int64_t *first, int64_t n_first, const float *p, int64_t n_p, const int64_t *levels,
                         int64_t count, int64_t columns, const float *x, int64_t n, int64_t d, const int64_t *rows,
                         int64_t n_rows, float *out, int64_t n_out, int64_t d_out, float *room, int64_t n_room,
                         int64_t d_room, int64_t *at, int64_t n_at, int64_t streaming);
void frame_decompose__f8(const int64_t *first, int64_t n_first, const double *p, int64_t n_p, const int64_t *levels,
                         int64_t count, int64_t columns, const double *x, int64_t n, int64_t d, const int64_t *rows,
                         int64_t n_rows, double *out, int64_t n_out, int64_t d_out, double *room, int64_t n_room,
                         int64_t d_room, int64_t *at, int64_t n_at, int64_t streaming);
void frame_reconstruct__f4(const int64_t *first, int64_t n_first, const float *p, int64_t n_p, const int64_t *levels,
                           int64_t count, int64_t columns, const float *c, int64_t n_c, int64_t d, float *out,
                           int64_t n, int64_t d_out, const int64_t *rows, int64_t n_rows, float *room, int64_t n_room,
                           int64_t d_room, int64_t *at, int64_t n_at,
                           int64_t streaming);
void frame_reconstruct__f8(const int64_t *first, int64_t n_first, const double *p, int64_t n_p, const int64_t *levels,
                           int64_t count, int64_t columns, const double *c, int64_t n_c, int64_t d, double *out,
                           int64_t n, int64_t d_out, const int64_t *rows, int64_t n_rows, double *room,
                           int64_t n_room, int64_t d_room, int64_t *at,
                           int64_t n_at, int64_t streaming);
void frame_average__f4(const int64_t *first, int64_t n_first, const float *p, int64_t n_p, const float *x, int64_t n,
                       int64_t d, const int64_t *rows, int64_t n_rows, float *up, int64_t n_up, int64_t d_up);
void frame_average__f8(const int64_t *first, int64_t n_first, const double *p, int64_t n_p, const double *x, int64_t n,
                       int64_t d, const int64_t *rows, int64_t n_rows, double *up, int64_t n_up, int64_t d_up);
void frame_lift__f4(const int64_t *leaf, int64_t n_leaf, const float *weight, int64_t n_weight, const float *x,
                    int64_t n_x, int64_t d, float *out, int64_t n, int64_t d_out, const int64_t *rows, int64_t n_rows,
                    int64_t streaming);
void frame_lift__f8(const int64_t *leaf, int64_t n_leaf, const double *weight, int64_t n_weight, const double *x,
                    int64_t n_x, int64_t d, double *out, int64_t n, int64_t d_out, const int64_t *rows, int64_t n_rows,
                    int64_t streaming);
void frame_detail__f4(const int64_t *first, int64_t n_first, const float *p, int64_t n_p, const int64_t *leaf,
                      int64_t n_leaf, const float *weight, int64_t n_weight, const float *x, int64_t n, int64_t d,
                      const int64_t *rows_of_x, int64_t n_rows_of_x, const float *up, int64_t n_up, int64_t d_up,
                      float *out, int64_t n_out, int64_t d_out, const int64_t *rows, int64_t n_rows,
                      int64_t streaming);
void frame_detail__f8(const int64_t *first, int64_t n_first, const double *p, int64_t n_p, const int64_t *leaf,
                      int64_t n_leaf, const double *weight, int64_t n_weight, const double *x, int64_t n, int64_t d,
                      const int64_t *rows_of_x, int64_t n_rows_of_x, const double *up, int64_t n_up, int64_t d_up,
                      double *out, int64_t n_out, int64_t d_out, const int64_t *rows, int64_t n_rows,
                      int64_t streaming);

/* models.c */
void model_attend__f4(const int64_t *pointers, int64_t n_pointers, const int32_t *indices, int64_t n_indices,
                      const float *weights, int64_t n_weights, int64_t d_weights, const float *factors,
                      int64_t n_factors, int64_t d_factors, const float *z, int64_t n, int64_t heads, int64_t width,
                      float *out, int64_t n_out, int64_t h_out, int64_t w_out);
void model_attend__f8(const int64_t *pointers, int64_t n_pointers, const int32_t *indices, int64_t n_indices,
                      const double *weights, int64_t n_weights, int64_t d_weights, const double *factors,
                      int64_t n_factors, int64_t d_factors, const double *z, int64_t n, int64_t heads, int64_t width,
                      double *out, int64_t n_out, int64_t h_out, int64_t w_out);
void model_attend_back__f4(const int64_t *pointers, int64_t n_pointers, const int32_t *indices, int64_t n_indices,
                           const float *source, int64_t n_source, int64_t d_source, const float *target,
                           int64_t n_target, int64_t d_target, double slope, const float *weights, int64_t n_weights,
                           int64_t d_weights, const float *factors, int64_t n_factors, int64_t d_factors,
                           const float *z, int64_t n, int64_t heads, int64_t width, const float *gradient,
                           int64_t n_gradient, int64_t h_gradient, int64_t w_gradient, float *by_z, int64_t n_by_z,
                           int64_t h_by_z, int64_t w_by_z, float *by_source, int64_t n_by_source, int64_t d_by_source,
                           float *by_target, int64_t n_by_target, int64_t d_by_target, float *room, int64_t n_room,
                           int64_t d_room);
void model_attend_back__f8(const int64_t *pointers, int64_t n_pointers, const int32_t *indices, int64_t n_indices,
                           const double *source, int64_t n_source, int64_t d_source, const double *target,
                           int64_t n_target, int64_t d_target, double slope, const double *weights, int64_t n_weights,
                           int64_t d_weights, const double *factors, int64_t n_factors, int64_t d_factors,
                           const double *z, int64_t n, int64_t heads, int64_t width, const double *gradient,
                           int64_t n_gradient, int64_t h_gradient, int64_t w_gradient, double *by_z, int64_t n_by_z,
                           int64_t h_by_z, int64_t w_by_z, double *by_source, int64_t n_by_source,
                           int64_t d_by_source, double *by_target, int64_t n_by_target, int64_t d_by_target,
                           double *room, int64_t n_room, int64_t d_room);
void model_attention__f4(const int64_t *pointers, int64_t n_pointers, const int32_t *indices, int64_t n_indices,
                         const float *source, int64_t n_source, int64_t heads, const float *target, int64_t n_target,
                         int64_t d_target, double slope, float *weights, int64_t n_weights, int64_t d_weights,
                         float *room, int64_t two, int64_t d_room);
void model_attention__f8(const int64_t *pointers, int64_t n_pointers, const int32_t *indices, int64_t n_indices,
                         const double *source, int64_t n_source, int64_t heads, const double *target,
                         int64_t n_target, int64_t d_target, double slope, double *weights, int64_t n_weights,
                         int64_t d_weights, double *room, int64_t two, int64_t d_room);
void model_drop__f4(const float *x, int64_t n, const uint8_t *mask, int64_t n_mask, double scale, float *out,
                    int64_t n_out);
void model_drop__f8(const double *x, int64_t n, const uint8_t *mask, int64_t n_mask, double scale, double *out,
                    int64_t n_out);
void model_relu_drop__f4(const float *x, int64_t n, const uint8_t *mask, int64_t n_mask, double scale, float *out,
                         int64_t n_out);
void model_relu_drop__f8(const double *x, int64_t n, const uint8_t *mask, int64_t n_mask, double scale, double *out,
                         int64_t n_out);
void model_relu_drop_back__f4(const float *gradient, int64_t n, const float *y, int64_t n_y, double scale, float *out,
                              int64_t n_out);
void model_relu_drop_back__f8(const double *gradient, int64_t n, const double *y, int64_t n_y, double scale,
                              double *out, int64_t n_out);
void model_unit_rows__f4(const int64_t *pointers, int64_t n_pointers, const float *data, int64_t n_data, float *out,
                         int64_t n_out);
void model_unit_rows__f8(const int64_t *pointers, int64_t n_pointers, const double *data, int64_t n_data, double *out,
                         int64_t n_out);

/* product.c: rows first, ..., last - 1 of a sparse matrix times a dense one */
void sparse_product__f4_i4_i4(const int32_t *pointers, int64_t n_ptr, const int32_t *indices, int64_t n_indices,
                              const float *data, int64_t n_data, const float *B, int64_t rows_B, int64_t width,
                              float *out, int64_t rows_out, int64_t width_out, int64_t first, int64_t last);
void sparse_product__f4_i8_i4(const int64_t *pointers, int64_t n_ptr, const int32_t *indices, int64_t n_indices,
                              const float *data, int64_t n_data, const float *B, int64_t rows_B, int64_t width,
                              float *out, int64_t rows_out, int64_t width_out, int64_t first, int64_t last);
void sparse_product__f4_i8_i8(const int64_t *pointers, int64_t n_ptr, const int64_t *indices, int64_t n_indices,
                              const float *data, int64_t n_data, const float *B, int64_t rows_B, int64_t width,
                              float *out, int64_t rows_out, int64_t width_out, int64_t first, int64_t last);
void sparse_product__f8_i4_i4(const int32_t *pointers, int64_t n_ptr, const int32_t *indices, int64_t n_indices,
                              const double *data, int64_t n_data, const double *B, int64_t rows_B, int64_t width,
                              double *out, int64_t rows_out, int64_t width_out, int64_t first, int64_t last);
void sparse_product__f8_i8_i4(const int64_t *pointers, int64_t n_ptr, const int32_t *indices, int64_t n_indices,
                              const double *data, int64_t n_data, const double *B, int64_t rows_B, int64_t width,
                              double *out, int64_t rows_out, int64_t width_out, int64_t first, int64_t last);
void sparse_product__f8_i8_i8(const int64_t *pointers, int64_t n_ptr, const int64_t *indices, int64_t n_indices,
                              const double *data, int64_t n_data, const double *B, int64_t rows_B, int64_t width,
                              double *out, int64_t rows_out, int64_t width_out, int64_t first, int64_t last);

/* trees.c */
int64_t move_rows__i4_u8(const int32_t *order, int64_t n, const int32_t *place, int64_t n_place, const int32_t *indptr,
    int64_t n_ptr, const int32_t *indices, int64_t n_indices, const uint64_t *data, int64_t n_data, int32_t *out_ptr,
    int64_t n_out_ptr, int32_t *out_indices, int64_t n_out, uint64_t *out_data, int64_t n_out_data);
int64_t move_rows__i4_u4(const int32_t *order, int64_t n, const int32_t *place, int64_t n_place, const int32_t *indptr,
    int64_t n_ptr, const int32_t *indices, int64_t n_indices, const uint32_t *data, int64_t n_data, int32_t *out_ptr,
    int64_t n_out_ptr, int32_t *out_indices, int64_t n_out, uint32_t *out_data, int64_t n_out_data);
int64_t list_rows__i4_u8(const int32_t *place, int64_t n_place, const int32_t *indptr, int64_t n_ptr, const int32_t
    *indices, int64_t n_indices, const uint64_t *data, int64_t n_data, int32_t *out_indices, int64_t n_out, uint64_t
    *out_data, int64_t n_out_data);
int64_t list_rows__i4_u4(const int32_t *place, int64_t n_place, const int32_t *indptr, int64_t n_ptr, const int32_t
    *indices, int64_t n_indices, const uint32_t *data, int64_t n_data, int32_t *out_indices, int64_t n_out, uint32_t
    *out_data, int64_t n_out_data);
void order_by_label__i4(const int32_t *labels, int64_t n, int32_t *first, int64_t n_first, int32_t *members, int64_t
    n_members);
int64_t holds_each_once__i4(const int32_t *values, int64_t n, uint8_t *seen, int64_t n_seen);
int64_t number_by_appearance__i4(const int32_t *labels, int64_t n, int32_t *place, int64_t n_place, int32_t *out,
    int64_t n_out);
int64_t sort_hashes__i4(const uint64_t *colours, int64_t n, uint64_t *sorted, int64_t n_sorted, int32_t *order,
    int64_t n_order);
void transpose__i4_u8(const int32_t *indptr, int64_t n_ptr, const int32_t *indices, int64_t n_indices, const uint64_t
    *data, int64_t n_data, int32_t *out_ptr, int64_t n_out_ptr, int32_t *out_indices, int64_t n_out, uint64_t
    *out_data, int64_t n_out_data);
void transpose__i4_u4(const int32_t *indptr, int64_t n_ptr, const int32_t *indices, int64_t n_indices, const uint32_t
    *data, int64_t n_data, int32_t *out_ptr, int64_t n_out_ptr, int32_t *out_indices, int64_t n_out, uint32_t
    *out_data, int64_t n_out_data);
int64_t merge_rows__i4(const int32_t *indptr, int64_t n_ptr, const int32_t *indices, int64_t n_indices, const double
    *data, int64_t n_data, const int32_t *other_ptr, int64_t n_other_ptr, const int32_t *other, int64_t n_other, const
    double *other_data, int64_t n_other_data, int64_t largest, int32_t *out_ptr, int64_t n_out_ptr, int32_t *out,
    int64_t n_out, double *out_data, int64_t n_out_data);
int64_t drop_loops__i4(int32_t *indptr, int64_t n_ptr, int32_t *indices, int64_t n_indices, double *data, int64_t
    n_data);
void sums__i4(const int32_t *indptr, int64_t n_ptr, const double *data, int64_t n_data, double *out, int64_t n_out);
int64_t order_free_product__i4(const int32_t *indptr, int64_t n_ptr, const int32_t *indices, int64_t n_indices, const
    double *data, int64_t n_data, const double *x, int64_t n_x, int64_t width, double *out, int64_t n_out, int64_t
    out_width);
void divide_rows__i4(const int32_t *indptr, int64_t n_ptr, const int32_t *indices, int64_t n_indices, const double
    *data, int64_t n_data, const double *degree, int64_t n_degree, int64_t both, double *out, int64_t n_out);
void count_terms__i4(const int32_t *indptr, int64_t n_ptr, const int32_t *indices, int64_t n_indices, const int64_t
    *terms, int64_t n_terms, int64_t most, int64_t *out, int64_t n_out);
int64_t move_rows__i8_u8(const int64_t *order, int64_t n, const int64_t *place, int64_t n_place, const int64_t *indptr,
    int64_t n_ptr, const int64_t *indices, int64_t n_indices, const uint64_t *data, int64_t n_data, int64_t *out_ptr,
    int64_t n_out_ptr, int64_t *out_indices, int64_t n_out, uint64_t *out_data, int64_t n_out_data);
int64_t move_rows__i8_u4(const int64_t *order, int64_t n, const int64_t *place, int64_t n_place, const int64_t *indptr,
    int64_t n_ptr, const int64_t *indices, int64_t n_indices, const uint32_t *data, int64_t n_data, int64_t *out_ptr,
    int64_t n_out_ptr, int64_t *out_indices, int64_t n_out, uint32_t *out_data, int64_t n_out_data);
int64_t list_rows__i8_u8(const int64_t *place, int64_t n_place, const int64_t *indptr, int64_t n_ptr, const int64_t
    *indices, int64_t n_indices, const uint64_t *data, int64_t n_data, int64_t *out_indices, int64_t n_out, uint64_t
    *out_data, int64_t n_out_data);
int64_t list_rows__i8_u4(const int64_t *place, int64_t n_place, const int64_t *indptr, int64_t n_ptr, const int64_t
    *indices, int64_t n_indices, const uint32_t *data, int64_t n_data, int64_t *out_indices, int64_t n_out, uint32_t
    *out_data, int64_t n_out_data);
void order_by_label__i8(const int64_t *labels, int64_t n, int64_t *first, int64_t n_first, int64_t *members, int64_t
    n_members);
int64_t holds_each_once__i8(const int64_t *values, int64_t n, uint8_t *seen, int64_t n_seen);
int64_t number_by_appearance__i8(const int64_t *labels, int64_t n, int64_t *place, int64_t n_place, int64_t *out,
    int64_t n_out);
int64_t sort_hashes__i8(const uint64_t *colours, int64_t n, uint64_t *sorted, int64_t n_sorted, int64_t *order,
    int64_t n_order);
void transpose__i8_u8(const int64_t *indptr, int64_t n_ptr, const int64_t *indices, int64_t n_indices, const uint64_t
    *data, int64_t n_data, int64_t *out_ptr, int64_t n_out_ptr, int64_t *out_indices, int64_t n_out, uint64_t
    *out_data, int64_t n_out_data);
void transpose__i8_u4(const int64_t *indptr, int64_t n_ptr, const int64_t *indices, int64_t n_indices, const uint32_t
    *data, int64_t n_data, int64_t *out_ptr, int64_t n_out_ptr, int64_t *out_indices, int64_t n_out, uint32_t
    *out_data, int64_t n_out_data);
int64_t merge_rows__i8(const int64_t *indptr, int64_t n_ptr, const int64_t *indices, int64_t n_indices, const double
    *data, int64_t n_data, const int64_t *other_ptr, int64_t n_other_ptr, const int64_t *other, int64_t n_other, const
    double *other_data, int64_t n_other_data, int64_t largest, int64_t *out_ptr, int64_t n_out_ptr, int64_t *out,
    int64_t n_out, double *out_data, int64_t n_out_data);
int64_t drop_loops__i8(int64_t *indptr, int64_t n_ptr, int64_t *indices, int64_t n_indices, double *data, int64_t
    n_data);
void sums__i8(const int64_t *indptr, int64_t n_ptr, const double *data, int64_t n_data, double *out, int64_t n_out);
int64_t order_free_product__i8(const int64_t *indptr, int64_t n_ptr, const int64_t *indices, int64_t n_indices, const
    double *data, int64_t n_data, const double *x, int64_t n_x, int64_t width, double *out, int64_t n_out, int64_t
    out_width);
void divide_rows__i8(const int64_t *indptr, int64_t n_ptr, const int64_t *indices, int64_t n_indices, const double
    *data, int64_t n_data, const double *degree, int64_t n_degree, int64_t both, double *out, int64_t n_out);
void count_terms__i8(const int64_t *indptr, int64_t n_ptr, const int64_t *indices, int64_t n_indices, const int64_t
    *terms, int64_t n_terms, int64_t most, int64_t *out, int64_t n_out);
int64_t count_hashes(uint64_t *colours, int64_t n, uint64_t *room, int64_t n_room);

