/* AVX2 and FMA: elementwise kernels. */
#include "backend/cpu/kern/x86/lanes_avx2.h"

#include "backend/cpu/kern/body/math_body.h"
#include "backend/cpu/kern/body/vec_body.h"

static void rope_pairs_avx2(float *y, const float *x, const float *c, const float *s, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 a = _mm256_loadu_ps(x + 2 * i), b = _mm256_loadu_ps(x + 2 * i + 8);
        /* pairs in the order 0 1 4 5 2 3 6 7, and so must be c and s */
        __m256 x1 = _mm256_shuffle_ps(a, b, 0x88), x2 = _mm256_shuffle_ps(a, b, 0xdd);
        __m256d pc = _mm256_castps_pd(_mm256_loadu_ps(c + i));
        __m256d ps = _mm256_castps_pd(_mm256_loadu_ps(s + i));
        __m256 vc = _mm256_castpd_ps(_mm256_permute4x64_pd(pc, 0xd8));
        __m256 vs = _mm256_castpd_ps(_mm256_permute4x64_pd(ps, 0xd8));
        __m256 y1 = _mm256_fmsub_ps(x1, vc, _mm256_mul_ps(x2, vs));
        __m256 y2 = _mm256_fmadd_ps(x2, vc, _mm256_mul_ps(x1, vs));
        _mm256_storeu_ps(y + 2 * i, _mm256_unpacklo_ps(y1, y2));
        _mm256_storeu_ps(y + 2 * i + 8, _mm256_unpackhi_ps(y1, y2));
    }
    for (; i < n; i++) {
        float x1 = x[2 * i], x2 = x[2 * i + 1];
        y[2 * i] = __builtin_fmaf(x1, c[i], -(x2 * s[i]));
        y[2 * i + 1] = __builtin_fmaf(x2, c[i], x1 * s[i]);
    }
}

void kern_vec_avx2(kern_vec *v)
{
    vec_install(v);
    v->rope_pairs = rope_pairs_avx2;
}
