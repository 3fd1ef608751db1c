/* Owns the merging of long words: always the pair of least rank, the leftmost of equals, until no pair
   merges.  Pairs wait in one list for each rank, and the lists in a heap, so that a word of few ranks
   (one letter, a million times) costs time in proportion to its length.  Lists are in order of place;
   one that a push has put out of order is sorted before its next pair is taken. */
#include "text/heap.h"
#include "text/tok_priv.h"

typedef struct entry {
    int32_t at;    /* index of the pair's left symbol */
    uint32_t next; /* 1 + index; 0: the last */
} entry;

typedef struct list {
    uint32_t rank, head, tail; /* 1 + indices of entries; 0: empty */
    bool queued, dirty;        /* in the heap; out of order */
} list;

typedef struct merger {
    const tok *t;
    cairn_str word;
    pair_fn pair;
    sym *s;
    buf lists, table, entries; /* table: 1 + index of a list, by a hash of its rank */
    buf *heap;
    uint32_t mask, unused; /* unused: a chain of free entries */
    uint32_t least;        /* of the ranks pushed since it was set */
} merger;

static list *list_at(merger *m, uint32_t i)
{
    return (list *)(void *)m->lists.ptr + i;
}

static entry *entry_at(merger *m, uint32_t i)
{
    return (entry *)(void *)m->entries.ptr + (i - 1);
}

static uint32_t *place_of(merger *m, uint32_t rank)
{
    uint32_t *table = (uint32_t *)(void *)m->table.ptr;
    uint32_t i = (uint32_t)((uint64_t)rank * 0x9E3779B97F4A7C15u >> 32);

    while (table[i & m->mask] && list_at(m, table[i & m->mask] - 1)->rank != rank) i++;
    return &table[i & m->mask];
}

static bool grow_table(merger *m)
{
    uint32_t n = m->mask ? (m->mask + 1) * 2 : 64;
    size_t size = n * sizeof(uint32_t);

    buf_clear(&m->table);
    if (!buf_grow(&m->table, size)) return false;
    memset(m->table.ptr, 0, size);
    m->mask = n - 1;
    for (uint32_t i = 0; i < m->lists.len / sizeof(list); i++)
        *place_of(m, list_at(m, i)->rank) = i + 1;
    return true;
}

/* Index of the rank's list; UINT32_MAX: no memory. */
static uint32_t list_of(merger *m, uint32_t rank)
{
    uint32_t n = (uint32_t)(m->lists.len / sizeof(list));

    if ((n + 1) * 2 > m->mask && !grow_table(m)) return UINT32_MAX;
    uint32_t *place = place_of(m, rank);
    if (*place) return *place - 1;
    list fresh = {.rank = rank};
    buf_add(&m->lists, &fresh, sizeof fresh);
    if (buf_status(&m->lists) != CAIRN_OK) return UINT32_MAX;
    *place = n + 1;
    return n;
}

static uint32_t new_entry(merger *m, int32_t at)
{
    entry e = {at, 0};
    uint32_t i = m->unused;

    if (i) {
        m->unused = entry_at(m, i)->next;
        *entry_at(m, i) = e;
        return i;
    }
    buf_add(&m->entries, &e, sizeof e);
    if (buf_status(&m->entries) != CAIRN_OK) return 0;
    return (uint32_t)(m->entries.len / sizeof e);
}

static void enqueue(merger *m, uint32_t i)
{
    list *l = list_at(m, i);

    if (l->queued || !l->head) return;
    l->queued = true;
    heap_push(m->heap, (heap_item){(uint64_t)l->rank << 32 | i, 0});
}

/* The pair at `at` waits, if there is one. */
static bool push(merger *m, int32_t at)
{
    uint32_t rank, id;

    if (at < 0 || !m->pair(m->t, m->word, m->s, at, &rank, &id)) return true;
    uint32_t i = list_of(m, rank), e = new_entry(m, at);
    if (i == UINT32_MAX || !e) return false;
    list *l = list_at(m, i);
    if (!l->head) {
        l->head = e;
        l->dirty = false;
    } else {
        entry *last = entry_at(m, l->tail);
        if (at < last->at) l->dirty = true;
        last->next = e;
    }
    l->tail = e;
    if (rank < m->least) m->least = rank;
    enqueue(m, i);
    return true;
}

/* Two ordered chains into one. */
static uint32_t join(merger *m, uint32_t a, uint32_t b)
{
    uint32_t head = 0, *to = &head;

    while (a && b) {
        uint32_t *from = entry_at(m, b)->at < entry_at(m, a)->at ? &b : &a;
        *to = *from;
        to = &entry_at(m, *from)->next;
        *from = *to;
    }
    *to = a ? a : b;
    return head;
}

/* Merge sort from below: part[k] is empty or an ordered chain of 2^k ordered runs. */
static void sort(merger *m, list *l)
{
    uint32_t part[32] = {0}, rest = l->head, all = 0;

    while (rest) {
        uint32_t run = rest, end = rest, next;
        while ((next = entry_at(m, end)->next) && entry_at(m, next)->at >= entry_at(m, end)->at)
            end = next;
        rest = next;
        entry_at(m, end)->next = 0;
        int k = 0;
        for (; k < 31 && part[k]; k++) {
            run = join(m, part[k], run);
            part[k] = 0;
        }
        part[k] = part[k] ? join(m, part[k], run) : run;
    }
    for (int k = 0; k < 32; k++)
        if (part[k]) all = join(m, part[k], all);
    l->head = all;
    for (l->tail = all; entry_at(m, l->tail)->next;) l->tail = entry_at(m, l->tail)->next;
    l->dirty = false;
}

/* Merges the pair at i into its left symbol. */
static bool merge_at(merger *m, int32_t i, uint32_t id)
{
    sym *s = m->s;
    int32_t next = s[i].next;

    if (m->t->score == NULL) s[i].id = id; /* with scores, a symbol is its place in the word */
    s[i].len += s[next].len;
    s[i].next = s[next].next;
    s[next].len = 0;
    if (s[i].next >= 0) s[s[i].next].prev = i;
    return push(m, s[i].prev) && push(m, i);
}

/* Pairs of list k, until it is empty or a lesser rank has come. */
static bool run_list(merger *m, uint32_t k)
{
    uint32_t rank, id;

    while (list_at(m, k)->head) {
        list *l = list_at(m, k);
        if (l->dirty) sort(m, l);
        uint32_t e = l->head;
        int32_t i = entry_at(m, e)->at;
        l->head = entry_at(m, e)->next;
        entry_at(m, e)->next = m->unused;
        m->unused = e;
        if (!m->s[i].len || !m->pair(m->t, m->word, m->s, i, &rank, &id) || rank != l->rank)
            continue; /* stale */
        m->least = UINT32_MAX;
        if (!merge_at(m, i, id)) return false;
        if (m->least < list_at(m, k)->rank) break;
    }
    enqueue(m, k);
    return true;
}

cairn_status merge_long(const tok *t, cairn_str word, pair_fn pair, sym *s, int32_t n, work *w)
{
    merger m = {.t = t, .word = word, .pair = pair, .s = s, .heap = &w->heap};
    heap_item top;
    bool fine = true;

    buf_clear(m.heap);
    buf_init(&m.lists, MEM_TEXT);
    buf_init(&m.table, MEM_TEXT);
    buf_init(&m.entries, MEM_TEXT);
    for (int32_t i = 0; i < n && fine; i++) fine = push(&m, i);
    while (fine && heap_pop(m.heap, &top)) {
        uint32_t k = (uint32_t)(top.key & UINT32_MAX);
        list_at(&m, k)->queued = false;
        fine = run_list(&m, k);
    }
    if (buf_status(m.heap) != CAIRN_OK) fine = false;
    buf_deinit(&m.lists);
    buf_deinit(&m.table);
    buf_deinit(&m.entries);
    return fine ? CAIRN_OK : CAIRN_E_NOMEM;
}
