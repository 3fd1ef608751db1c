/* Continuous batching as a pure function: needs in, rows out.

   No item starves: decoding ones always run; of the prefilling ones the oldest always gets a row, and
   admission is in order of arrival. */
#include "engine/sched.h"

#include <assert.h>

#include "base/num.h"

/* Fills items to an even level: whoever needs no more than an even share is done, and the others
   share again what it left. */
static void share(sched_item *item, int32_t n, int32_t left)
{
    for (;;) {
        int32_t n_open = 0;
        for (int32_t i = 0; i < n; i++)
            n_open += !item[i].decoding && item[i].pending > item[i].rows;
        if (n_open == 0 || left == 0) return;
        const int32_t each = max_i32(1, left / n_open);
        for (int32_t i = 0; i < n && left > 0; i++) {
            sched_item *t = &item[i];
            if (t->decoding) continue;
            const int32_t more = min_i32(min_i32(each, left), t->pending - t->rows);
            t->rows += more;
            left -= more;
        }
    }
}

void sched_plan(sched_item *item, int32_t n, int32_t max_rows)
{
    assert(n <= max_rows);
    int32_t n_decode = 0;
    for (int32_t i = 0; i < n; i++) {
        assert(item[i].pending >= item[i].decoding);
        item[i].rows = item[i].decoding ? 1 : 0;
        n_decode += item[i].decoding;
    }
    int32_t left = max_rows - n_decode;
    if (n_decode > 0) left = min_i32(left, SCHED_SHARED_ROWS);
    share(item, n, left);
}
