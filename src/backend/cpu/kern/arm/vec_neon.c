/* NEON: elementwise kernels. */
#include "backend/cpu/kern/arm/lanes_neon.h"

#include "backend/cpu/kern/body/math_body.h"
#include "backend/cpu/kern/body/vec_body.h"

static void rope_pairs_neon(float *y, const float *x, const float *c, const float *s, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const float32x4x2_t p = vld2q_f32(x + 2 * i); /* apart: first and second of pairs */
        const float32x4_t vc = vld1q_f32(c + i), vs = vld1q_f32(s + i);
        float32x4x2_t r;
        r.val[0] = vfmaq_f32(vnegq_f32(vmulq_f32(p.val[1], vs)), p.val[0], vc);
        r.val[1] = vfmaq_f32(vmulq_f32(p.val[0], vs), p.val[1], vc);
        vst2q_f32(y + 2 * i, r);
    }
    for (; i < n; i++) {
        const float x1 = x[2 * i], x2 = x[2 * i + 1];
        y[2 * i] = __builtin_fmaf(x1, c[i], -(x2 * s[i]));
        y[2 * i + 1] = __builtin_fmaf(x2, c[i], x1 * s[i]);
    }
}

void kern_vec_neon(kern_vec *v)
{
    vec_install(v);
    v->rope_pairs = rope_pairs_neon;
}
