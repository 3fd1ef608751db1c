/* How attention sees a cache: blocks of 64 positions, found through a table by absolute position.

   A block holds KV_BLOCK positions of every layer of one group.  Inside it, for layer L and KV head
   h, where R(c, n) is kv_row_bytes, what n elements take in codec c:
     keys    at k_off + h·KV_BLOCK·R(k, dk):  KV_BLOCK/KV_TILE tiles, each [dk][KV_TILE]  (position fastest)
     values  at v_off + h·KV_BLOCK·R(v, dv):  KV_BLOCK rows of dv
   In a latent layer a value is the first dv elements of its key, which lies by rows: at
   k_off + h·KV_BLOCK·R(k, dk): KV_BLOCK rows of dk.
   Layers of one group drop old blocks together (a sliding window); block i of a table covers the
   positions [64i, 64i+63] and is NULL where it was dropped or not yet reserved.

   Coded kinds lie by groups of `group` elements of one head (numerics.md says what the numbers mean):
     a row    each group: its numbers (f16), then its codes
     a tile   each group: its first number of all 16 positions, its second, then the codes [element][16];
              4-bit codes in pairs [element / 2][16]
   A byte of 4-bit codes has the even element in its low half; 2 and 3 bits are a stream, low bits first.

   Recurrent state is f32, one set a sequence, whatever the codec: what the layers remember after the
   last position, all 0 before the first.  A step's op reads and writes it in place. */
#ifndef TENSOR_KVVIEW_H
#define TENSOR_KVVIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KV_BLOCK = 64, KV_TILE = 16, KV_GROUP_MAX = 128 };

typedef enum kv_kind {
    KV_F16,
    KV_BF16,
    KV_F32,
    KV_Q8, /* affine */
    KV_Q4,
    KV_TURBO_K8, /* keys of TurboQuant */
    KV_TURBO_K4,
    KV_TURBO_V4, /* its values, rotated */
    KV_TURBO_V3,
    KV_TURBO_V2
} kv_kind;
enum { KV_PLAIN_KINDS = KV_F32 + 1, KV_KINDS = KV_TURBO_V2 + 1 };

typedef struct kv_codec {
    kv_kind kind;
    int32_t group; /* elements that share their numbers; plain: 0 */
} kv_codec;

typedef struct kv_layer {
    int32_t group; /* -1: no keys and values */
    kv_codec k, v; /* latent: the same */
    int32_t n_kv_head, dk, dv;
    size_t k_off, v_off; /* latent: the same */
    size_t state_off;    /* of the layer's first value in a sequence's recurrent state */
    bool latent;
    /* Positions from late_from on, a multiple of KV_BLOCK, lie as this says; NULL: as all do. */
    const struct kv_layer *late;
    int32_t late_from;
} kv_layer;

/* The codecs of each layer; where `layer` is NULL all have `all`.  In a layer whose start is not 0, positions
   before it, a multiple of KV_BLOCK, have `all`. */
typedef struct kv_pair {
    kv_codec k, v;
} kv_pair;
typedef struct kv_scheme {
    kv_pair all;
    const kv_pair *layer; /* borrowed, as */
    const int32_t *start; /* NULL: 0 everywhere */
} kv_scheme;

static inline bool kv_is_plain(kv_kind k)
{
    return k < (kv_kind)KV_PLAIN_KINDS;
}
static inline bool kv_is_rotated(kv_kind k)
{
    return k >= KV_TURBO_V4;
}
static inline size_t kv_bits(kv_kind k)
{
    static const uint8_t bits[KV_KINDS] = {16, 16, 32, 8, 4, 8, 4, 4, 3, 2};
    return bits[k];
}
/* f16 numbers of a group of a coded kind. */
static inline size_t kv_numbers(kv_kind k)
{
    return kv_is_rotated(k) ? 1 : 2;
}
static inline size_t kv_group_bytes(kv_codec c)
{
    return 2 * kv_numbers(c.kind) + (size_t)c.group * kv_bits(c.kind) / 8;
}
/* n: of a coded kind whole groups. */
static inline size_t kv_row_bytes(kv_codec c, int32_t n)
{
    if (kv_is_plain(c.kind)) return (size_t)n * kv_bits(c.kind) / 8;
    return (size_t)(n / c.group) * kv_group_bytes(c);
}
static inline kv_scheme kv_plain(kv_kind k)
{
    const kv_codec c = {k, 0};
    const kv_scheme s = {{c, c}, NULL, NULL};
    return s;
}
static inline kv_pair kv_layer_pair(const kv_scheme *s, int32_t layer)
{
    return s->layer ? s->layer[layer] : s->all;
}
static inline int32_t kv_layer_start(const kv_scheme *s, int32_t layer)
{
    return s->start ? s->start[layer] : 0;
}
/* How a position lies. */
static inline const kv_layer *kv_at(const kv_layer *l, int32_t pos)
{
    return l->late && pos >= l->late_from ? l->late : l;
}
/* A position's row of values, of a latent layer its key. */
static inline size_t kv_value_row(const kv_layer *l)
{
    return l->latent ? kv_row_bytes(l->k, l->dk) : kv_row_bytes(l->v, l->dv);
}
/* One position of one head. */
static inline size_t kv_pos_bytes(const kv_layer *l)
{
    return kv_row_bytes(l->k, l->dk) + (l->latent ? 0 : kv_row_bytes(l->v, l->dv));
}

#endif
