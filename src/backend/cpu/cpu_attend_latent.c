/* ATTEND's reading of latent layers, whose keys lie by rows and begin with their values (DeepSeek-AI 2024,
   "DeepSeek-V2", section 2.1).  Every query head meets the same latent, so the product turns round: a
   lane is a query vector, and each latent is a row that is widened once for all of them.  Positions
   may be any (ATTEND_AT): rows are fetched one by one.  A score is the same chain in rising d that
   tiles of keys give, bit for bit. */
#include "backend/cpu/cpu_attend.h"

#include "tensor/kvview.h"

void latent_turn(const attend_job *j, const unit *u, const float *q, float *turned)
{
    const size_t dk = (size_t)j->kv->dk, n = (size_t)unit_vecs(j, u);
    for (size_t v = 0; v < pad16((int32_t)n); v++) {
        float *lane = turned + v / LANES * LANES * dk + v % LANES;
        for (size_t d = 0; d < dk; d++) lane[d * LANES] = v < n ? q[v * dk + d] : 0.0f;
    }
}

void latent_scores(const attend_job *j, const unit *u, int32_t a, int32_t b, int32_t p0, int32_t p1,
                   const float *q, const attend_scratch *sc)
{
    const size_t dk = (size_t)j->kv->dk, n = (size_t)(p1 - p0 + 1);
    const size_t v0 = (size_t)(a * j->heads), v1 = (size_t)(b * j->heads);
    const size_t first = v0 / LANES * LANES, width = pad16((int32_t)(v1 - first));
    const kern_mm m = {.c = sc->lanes,
                       .a = sc->panel,
                       .b = q + first * dk,
                       .ldc = width,
                       .lda = row_pitch(j->kv->dk),
                       .row = LANES,
                       .strip = LANES * dk,
                       .n_a = (int32_t)n,
                       .n_strip = (int32_t)(width / LANES),
                       .n = j->kv->dk};
    kv_open_rows(j, u, p0, p1 + 1, j->kv->dk, sc->panel);
    j->k->mm[KV_F32](&m);
    for (size_t v = v0; v < v1; v++) {
        float *s = sc->s + v * SCORE_PITCH + p0 % ATTEND_SPLIT;
        for (size_t i = 0; i < n; i++) s[i] = sc->lanes[i * width + v - first];
    }
}
