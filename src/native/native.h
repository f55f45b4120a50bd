/* What Python calls (see pegfan/_compiled.py); cffi reads this file, so it holds declarations and nothing else. */

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

