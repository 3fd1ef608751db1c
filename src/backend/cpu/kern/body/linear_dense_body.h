/* Dense weights by lane16: the walk over blocks that all levels share.  Each includes it once, after
   BLOCK_W and BLOCK_X, the weight and activation rows of a block, and defines dense_block: n_w rows times
   n_x vectors, both known where it is inlined.  Nothing here is seen outside the file that includes it. */
enum { F32, F16, BF16 };

INLINE void dense_block(const int type, const uint8_t *w, size_t w_stride, const int n_w,
                        const float *x, size_t x_stride, const int n_x, int32_t k, float *y,
                        size_t y_stride);

INLINE void dense_rows(const int type, const uint8_t *w, size_t w_stride, const int n_w,
                       const float *x, size_t x_stride, int32_t n_x, int32_t k, float *y,
                       size_t y_stride)
{
    int32_t t = 0;
    for (; t + BLOCK_X <= n_x; t += BLOCK_X)
        dense_block(type, w, w_stride, n_w, x + (size_t)t * x_stride, x_stride, BLOCK_X, k,
                    y + (size_t)t * y_stride, y_stride);
    for (; t < n_x; t++)
        dense_block(type, w, w_stride, n_w, x + (size_t)t * x_stride, x_stride, 1, k,
                    y + (size_t)t * y_stride, y_stride);
}

INLINE void dense(const int type, const uint8_t *w, size_t w_stride, int32_t n_w, const float *x,
                  size_t x_stride, int32_t n_x, int32_t k, float *y, size_t y_stride)
{
    int32_t r = 0;
    for (; r + BLOCK_W <= n_w; r += BLOCK_W)
        dense_rows(type, w + (size_t)r * w_stride, w_stride, BLOCK_W, x, x_stride, n_x, k, y + r,
                   y_stride);
    for (; r < n_w; r++)
        dense_rows(type, w + (size_t)r * w_stride, w_stride, 1, x, x_stride, n_x, k, y + r,
                   y_stride);
}

#define DEFINE_DENSE(name, type)                                                                   \
    void name(const uint8_t *w, size_t w_stride, int32_t n_w, const float *x, size_t x_stride,     \
              int32_t n_x, int32_t k, float *y, size_t y_stride)                                   \
    {                                                                                              \
        dense(type, w, w_stride, n_w, x, x_stride, n_x, k, y, y_stride);                           \
    }
