/* A block of dense weights times vectors over sixteen lanes, for levels without masks.  Included after
   lanes_LEVEL.h, linear_dense_body.h and

     load16(type, p)  sixteen weights at any address */
INLINE size_t width(const int type)
{
    return type == F32 ? 4 : 2;
}

/* Loops over sums are unrolled by order: one that is not keeps them in memory. */

/* What is left of a row, n < 16 weights; the other lanes keep their sums.  Not a part of every block: it
   would make up most of their code. */
static __attribute__((noinline)) void dense_rest(int type, const uint8_t *w, const float *x,
                                                 size_t n, float lane[16])
{
    uint8_t rest[16 * sizeof(float)] = {0};
    float weight[16];
    memcpy(rest, w, n * width(type));
    store16(weight, load16(type, rest));
    for (size_t i = 0; i < n; i++) lane[i] = __builtin_fmaf(weight[i], x[i], lane[i]);
}

INLINE void dense_block(const int type, const uint8_t *w, size_t w_stride, const int n_w,
                        const float *x, size_t x_stride, const int n_x, int32_t k, float *y,
                        size_t y_stride)
{
    const size_t whole = (size_t)k / 16 * 16, left = (size_t)k - whole, e = width(type);
    v16 sum[BLOCK_W][BLOCK_X];
#pragma GCC unroll 4
    for (int r = 0; r < n_w; r++) {
#pragma GCC unroll 4
        for (int t = 0; t < n_x; t++) sum[r][t] = set16(0.0f);
    }
    for (size_t i = 0; i < whole; i += 16) {
        v16 in[BLOCK_X];
        for (int t = 0; t < n_x; t++) in[t] = loadf16(x + (size_t)t * x_stride + i);
        for (int r = 0; r < n_w; r++) {
            const uint8_t *p = w + (size_t)r * w_stride + e * i;
            const v16 v = load16(type, p);
            if (n_x == 1) __builtin_prefetch(p + 1024, 0, 3);
            for (int t = 0; t < n_x; t++) sum[r][t] = fma16(v, in[t], sum[r][t]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < n_w; r++) {
#pragma GCC unroll 4
        for (int t = 0; t < n_x; t++) {
            if (left) {
                float lane[16];
                store16(lane, sum[r][t]);
                dense_rest(type, w + (size_t)r * w_stride + e * whole,
                           x + (size_t)t * x_stride + whole, left, lane);
                sum[r][t] = loadf16(lane);
            }
            y[(size_t)t * y_stride + (size_t)r] = v16_tree(sum[r][t]);
        }
    }
}
