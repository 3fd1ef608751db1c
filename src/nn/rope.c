/* Rotary frequencies: position p turns pair i by the angle p · inv_freq[i].

   default  theta^(-2i/dim)                        Su et al. 2021, "RoFormer", section 3.2.2
   linear   positions divided by a factor          Chen et al. 2023, "Position interpolation"
   dynamic  the default inside the trained context, beyond which no position is served
   yarn     Peng et al. 2023, "YaRN", sections 3.2 to 3.4
   llama3   three bands of wavelengths             Llama 3.1's reference code
   long     two lists of divisors, switched by the length of the sequence ("LongRoPE")

   Powers are computed in double by our own exp and log, from exponents rounded to f32 as the
   references do, then rounded to f32 once: the same bits on every machine. */
#include "nn/rope.h"

#include <math.h>

#include "base/diag.h"
#include "base/fmath.h"

/* theta^(2i/dim), f32. */
static float wave(double theta, int32_t i, int32_t dim)
{
    const float e = (float)(2 * i) / (float)dim;
    return (float)fmath_exp((double)e * fmath_log(theta));
}

static void fill_scaled(const rope_params *p, const float *divisor, float *f)
{
    for (int32_t i = 0; i < p->dim / 2; i++) {
        const float w = wave(p->theta, i, p->dim);
        f[i] = divisor ? 1.0f / (divisor[i] * w) : 1.0f / w;
        if (p->kind == ROPE_LINEAR) f[i] /= (float)p->factor;
    }
}

/* The pair whose wavelength makes `turns` turns in the original context (YaRN, equation 16). */
static double yarn_dim(const rope_params *p, double turns)
{
    return p->dim * fmath_log((double)p->ctx_orig / (turns * 2.0 * FMATH_PI)) /
           (2.0 * fmath_log(p->theta));
}

static double floor_of(double x)
{
    const double t = (double)(int64_t)x;
    return t > x ? t - 1.0 : t;
}

static void fill_yarn(const rope_params *p, float *f)
{
    double low = yarn_dim(p, p->beta_fast), high = yarn_dim(p, p->beta_slow);
    if (!p->no_truncate) {
        low = floor_of(low);
        high = -floor_of(-high);
    }
    if (low < 0) low = 0;
    if (high > p->dim - 1) high = p->dim - 1;
    if (low == high) high += 0.001;
    for (int32_t i = 0; i < p->dim / 2; i++) {
        const float w = wave(p->theta, i, p->dim);
        float ramp = (float)(((double)i - low) / (high - low));
        ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
        const float keep = 1.0f - ramp; /* share that is not interpolated */
        f[i] = 1.0f / ((float)p->factor * w) * (1.0f - keep) + 1.0f / w * keep;
    }
}

double rope_yarn_mscale(double factor, double mscale)
{
    return factor <= 1 ? 1.0 : 0.1 * mscale * fmath_log(factor) + 1.0;
}

static float yarn_attention(const rope_params *p)
{
    if (p->attention_factor > 0) return (float)p->attention_factor;
    if (p->mscale > 0 && p->mscale_all_dim > 0)
        return (float)(rope_yarn_mscale(p->factor, p->mscale) /
                       rope_yarn_mscale(p->factor, p->mscale_all_dim));
    return (float)rope_yarn_mscale(p->factor, 1.0);
}

static void fill_llama3(const rope_params *p, float *f)
{
    const float low_wave = (float)((double)p->ctx_orig / p->low_freq);
    const float high_wave = (float)((double)p->ctx_orig / p->high_freq);
    for (int32_t i = 0; i < p->dim / 2; i++) {
        const float inv = 1.0f / wave(p->theta, i, p->dim);
        const float len = 2.0f * (float)FMATH_PI / inv;
        f[i] = len > low_wave ? inv / (float)p->factor : inv;
        if (len >= high_wave && len <= low_wave) {
            const float smooth = (float)(((double)p->ctx_orig / (double)len - p->low_freq) /
                                         (p->high_freq - p->low_freq));
            f[i] = (1.0f - smooth) * inv / (float)p->factor + smooth * inv;
        }
    }
}

static float long_attention(const rope_params *p)
{
    if (p->attention_factor > 0) return (float)p->attention_factor;
    const double s = p->factor > 0 ? p->factor : (double)p->ctx / p->ctx_orig;
    if (s <= 1) return 1.0f;
    return sqrtf((float)(1.0 + fmath_log(s) / fmath_log((double)p->ctx_orig)));
}

/* One number of the parameters and the range in which the arithmetic is sound. */
static cairn_status in_range(const char *what, double v, double lo, double hi, cairn_diag *dg)
{
    if (v >= lo && v <= hi) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_CORRUPT, "rotary embedding: %s is %g; expected %g to %g", what, v,
                    lo, hi);
}

static cairn_status positive(const char *what, const float *v, int32_t n, cairn_diag *dg)
{
    for (int32_t i = 0; v && i < n; i++)
        if (!(v[i] > 0 && v[i] < 1e6f))
            return diag_set(dg, CAIRN_E_CORRUPT,
                            "rotary embedding: %s %d is %g; expected more than 0, less than 1e6",
                            what, (int)i, (double)v[i]);
    return CAIRN_OK;
}

static cairn_status check(const rope_params *p, cairn_diag *dg)
{
    if (p->dim <= 0 || p->dim % 2)
        return diag_set(dg, CAIRN_E_CORRUPT,
                        "rotary embedding of %d dimensions; expected a positive even number",
                        (int)p->dim);
    TRY(in_range("the base", p->theta, 1.01, 1e12, dg));
    TRY(in_range("attention_factor", p->attention_factor, 0, 1e3, dg));
    TRY(in_range("the attention scale", p->attention_scale, 0, 1e3, dg));
    if (p->kind == ROPE_LINEAR || p->kind == ROPE_YARN || p->kind == ROPE_LLAMA3)
        TRY(in_range("factor", p->factor, 1e-3, 1e6, dg));
    if (p->kind == ROPE_YARN || p->kind == ROPE_LLAMA3 || p->kind == ROPE_LONG)
        TRY(in_range("the original context", p->ctx_orig, 2, 1 << 28, dg));
    if (p->kind == ROPE_LLAMA3) {
        TRY(in_range("low_freq_factor", p->low_freq, 1e-3, 1e6, dg));
        TRY(in_range("high_freq_factor", p->high_freq, p->low_freq * 1.001, 1e6, dg));
    }
    if (p->kind == ROPE_YARN) {
        TRY(in_range("beta_fast", p->beta_fast, 1e-3, 1e6, dg));
        TRY(in_range("beta_slow", p->beta_slow, 1e-3, 1e6, dg));
        TRY(in_range("mscale", p->mscale, 0, 1e3, dg));
        TRY(in_range("mscale_all_dim", p->mscale_all_dim, 0, 1e3, dg));
    }
    if (p->kind == ROPE_LONG) {
        TRY(in_range("factor", p->factor, 0, 1e6, dg));
        if (!p->short_div || !p->long_div)
            return diag_set(dg, CAIRN_E_CORRUPT,
                            "rotary embedding: longrope without short_factor and long_factor");
    }
    if (p->divisor && p->kind != ROPE_DEFAULT && p->kind != ROPE_LINEAR)
        return diag_set(dg, CAIRN_E_UNSUPPORTED,
                        "rotary embedding: divisors of frequencies beside a scaling; expected one");
    TRY(positive("divisor", p->divisor, p->dim / 2, dg));
    TRY(positive("short factor", p->short_div, p->dim / 2, dg));
    return positive("long factor", p->long_div, p->dim / 2, dg);
}

cairn_status rope_make(const rope_params *p, arena *a, rope_spec *out, cairn_diag *dg)
{
    TRY(check(p, dg));
    float *f = arena_calloc(a, (size_t)p->dim / 2, sizeof *f);
    float *more = arena_calloc(a, (size_t)p->dim / 2, sizeof *more);
    if (!f || !more) return diag_set(dg, CAIRN_E_NOMEM, "rotary frequencies");
    rope_spec r = {
        .n_freq = p->dim / 2, .inv_freq = f, .mscale = 1.0f, .interleaved = p->interleaved};
    switch (p->kind) {
    case ROPE_DEFAULT:
    case ROPE_LINEAR:
    case ROPE_DYNAMIC:
        fill_scaled(p, p->divisor, f);
        break;
    case ROPE_LLAMA3:
        fill_llama3(p, f);
        break;
    case ROPE_YARN:
        fill_yarn(p, f);
        r.mscale = yarn_attention(p);
        break;
    case ROPE_LONG:
        fill_scaled(p, p->short_div, f);
        fill_scaled(p, p->long_div, more);
        r.inv_freq_long = more;
        r.switch_len = p->ctx_orig;
        r.mscale = long_attention(p);
        break;
    }
    if (p->attention_scale > 0) r.mscale *= (float)p->attention_scale;
    *out = r;
    return CAIRN_OK;
}
