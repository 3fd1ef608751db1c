/* Continuous batching as a pure function: needs in, rows out.

   No item starves: decoding ones always run; of the prefilling ones the oldest always gets its share, so
   it is done some day, and then the next is the oldest.  Short prompts pass long ones meanwhile: rows
   dealt out evenly would finish all of them late, and many short chunks read caches more often. */
#include "engine/sched.h"

#include <assert.h>

#include "base/num.h"

/* Rows of this item that the room has time for. */
static int32_t payable(const sched_item *t, const sched_room *room)
{
    const uint64_t paid = t->row_ns ? room->ns / t->row_ns : UINT64_MAX;
    if (paid >= (uint64_t)room->max_rows) return room->max_rows;
    return min_i32(max_i32((int32_t)paid, room->least), room->max_rows);
}

static void give(sched_item *t, int32_t rows, sched_room *room)
{
    rows = min_i32(min_i32(rows, t->pending - t->rows), payable(t, room));
    const uint64_t spent = (uint64_t)rows * t->row_ns;
    t->rows += rows;
    room->max_rows -= rows;
    room->ns -= spent < room->ns ? spent : room->ns;
    room->least = max_i32(0, room->least - rows);
}

/* A length, twice as long for each step of priority. */
static int64_t weight(const sched_item *t)
{
    return (int64_t)t->left << (t->priority + CAIRN_MAX_PRIORITY);
}

static sched_item *lightest(sched_item *item, int32_t n)
{
    sched_item *best = NULL;
    for (int32_t i = 0; i < n; i++) {
        sched_item *t = &item[i];
        if (t->decoding || t->rows == t->pending) continue;
        if (!best || weight(t) < weight(best)) best = t;
    }
    return best;
}

void sched_plan(sched_item *item, int32_t n, sched_room room)
{
    sched_item *oldest = NULL;
    for (int32_t i = 0; i < n; i++) {
        assert(item[i].pending >= item[i].decoding);
        item[i].rows = item[i].decoding ? 1 : 0;
        room.max_rows -= item[i].rows;
        if (!item[i].decoding && item[i].pending > 0 && !oldest) oldest = &item[i];
    }
    assert(room.max_rows >= 0);
    if (!oldest || room.max_rows == 0) return;
    give(oldest, max_i32(1, payable(oldest, &room) * SCHED_OLDEST / SCHED_SHARES), &room);
    for (sched_item *t = lightest(item, n); t && room.max_rows > 0; t = lightest(item, n)) {
        const int32_t before = t->rows;
        give(t, t->pending, &room);
        if (t->rows == before) return; /* no time is left */
    }
}
