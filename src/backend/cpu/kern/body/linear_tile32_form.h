/* Tiles of the formats with 32 weights a block, affine ones and those of e2m1: how they lie, and the walk along
   their blocks.  Nothing here is seen outside the file that includes it. */
#ifndef LINEAR_TILE32_FORM_H
#define LINEAR_TILE32_FORM_H

#include "backend/cpu/kern/body/fetch.h"

enum { BITS4, BITS5, BITS8, E2M1, IQ4 };
enum { HEAD_E8M0 = HEAD_F32 + 1, HEAD_E4M3 };

/* Twice the values of e2m1, plus 16. */
#define E2M1_CODES 16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4

/* What the code is specialised by. */
typedef struct form {
    int bits;
    int centre; /* subtracted from stored weights: 0, 8, 16; 128 where bytes are made unsigned */
    int min;    /* a minimum follows d */
    int head;   /* affine_head, or of e2m1: how d and the minimum lie; affine tiles are not
                   specialised by it, which would treble their code */
    int halves; /* NVFP4: in the minimum's place, the scale of the last 16 weights */
} form;

INLINE int head_bytes(form f)
{
    if (f.head == HEAD_E8M0 || f.head == HEAD_E4M3) return TILE_LINE;
    return (f.min ? 2 * TILE_LINE : TILE_LINE) * (f.head == HEAD_F32 ? 2 : 1);
}
INLINE int group_bytes(form f)
{
    return (f.bits == BITS8 ? 8 : f.bits == BITS5 ? 5 : 4) * TILE_LINE;
}

/* Where d of rows row … is, and the minimum. */
INLINE const uint8_t *head_d(form f, const uint8_t *head, int row)
{
    if (f.head == HEAD_E8M0 || f.head == HEAD_E4M3) return head + row;
    return head + (f.head == HEAD_F32 ? 4 : 2) * row;
}
INLINE const uint8_t *head_m(form f, const uint8_t *head, int row)
{
    return head_d(f, head, row) + head_bytes(f) / 2;
}

/* Walks the blocks of a tile: a head stands before every per_head of them. */
typedef struct walk {
    const uint8_t *head, *codes;
    int32_t per_head, left;
} walk;
INLINE void next_block(form f, walk *w)
{
    if (w->left == 0) {
        w->head = w->codes;
        w->codes += head_bytes(f);
        w->left = w->per_head;
        for (int i = 0; i < head_bytes(f); i += TILE_LINE) prefetch(w->head + i);
    } else if (f.head == HEAD_E8M0) {
        w->head += TILE_ROWS;
    }
    w->left--;
}

#endif
