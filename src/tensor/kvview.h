/* How attention sees a cache: blocks of 64 positions, found through a table by absolute position.

   A block holds KV_BLOCK positions of every layer of one group.  Inside it, for layer L and KV head
   h (e: bytes an element of the codec):
     keys    at k_off + h·KV_BLOCK·dk·e:  KV_BLOCK/KV_TILE tiles, each [dk][KV_TILE]  (position fastest)
     values  at v_off + h·KV_BLOCK·dv·e:  [KV_BLOCK][dv]
   In a latent layer a value is the first dv elements of its key, which lies by rows: at
   k_off + h·KV_BLOCK·dk·e: [KV_BLOCK][dk].
   Layers of one group drop old blocks together (a sliding window); block i of a table covers the
   positions [64i, 64i+63] and is NULL where it was dropped or not yet reserved.

   Recurrent state is f32, one set a sequence, whatever the codec: what the layers remember after the
   last position, all 0 before the first.  A step's op reads and writes it in place. */
#ifndef TENSOR_KVVIEW_H
#define TENSOR_KVVIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KV_BLOCK = 64, KV_TILE = 16 };

typedef enum kv_codec { KV_F16, KV_BF16, KV_F32 } kv_codec;

typedef struct kv_layer {
    int32_t group; /* -1: no keys and values */
    kv_codec codec;
    int32_t n_kv_head, dk, dv;
    size_t k_off, v_off; /* latent: the same */
    size_t state_off;    /* of the layer's first value in a sequence's recurrent state */
    bool latent;
} kv_layer;

static inline size_t kv_codec_bytes(kv_codec c)
{
    return c == KV_F32 ? 4 : 2;
}

#endif
