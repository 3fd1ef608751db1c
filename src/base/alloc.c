/* The only caller of malloc.  Each block carries its size and tag in 16 bytes before it, so that the
   counters are exact; they are atomic, since any thread may allocate.  Big blocks are mappings of their own:
   malloc writes a mapping's first page before it can be advised to be a huge one.  The fail-the-nth hook
   counts every request for memory, mapped spans too. */
#include "base/alloc.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/num.h"

typedef struct header {
    size_t size; /* what was asked for */
    uint32_t tag;
    uint32_t mark; /* a freed or foreign pointer does not have it */
} header;
_Static_assert(sizeof(header) == 16, "blocks stay 16-byte aligned");

enum { HUGE_FROM = 2 << 20 }; /* a page at a time, such blocks cost more in faults than in use */
enum { HUGE_PAGE = 2 << 20 };
enum { MARK_LIVE = 0x4c495645, MARK_BIG = 0x42494721, MARK_DEAD = 0x44454144 };

static _Atomic uint64_t used[MEM_TAG_COUNT];
static _Atomic uint64_t n_calls;
static _Atomic uint64_t fail_at;

static bool must_fail(void)
{
    return atomic_fetch_add(&n_calls, 1) + 1 == atomic_load(&fail_at);
}

static header *header_of(void *p)
{
    header *h = (header *)p - 1;
    assert(h->mark == MARK_LIVE || h->mark == MARK_BIG);
    return h;
}

/* Checkers of memory see only what malloc hands out, so under them nothing is big. */
#if defined(__SANITIZE_ADDRESS__)
#define CHECKED true
#elif defined(__has_feature)
#define CHECKED __has_feature(address_sanitizer)
#else
#define CHECKED false
#endif
static bool is_big(size_t all)
{
    return !CHECKED && all >= HUGE_FROM;
}

/* What is mapped for a big block: whole huge pages, so that newer kernels begin it at one. */
static size_t big_len(size_t all)
{
    return (all + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
}

static header *big_advise(void *p, size_t len)
{
    if (p == MAP_FAILED) return NULL;
    (void)madvise(p, len, MADV_HUGEPAGE); /* advice only */
    return p;
}

static header *big_map(size_t all)
{
    const size_t len = big_len(all);

    if (len < all) return NULL;
    return big_advise(mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                      len);
}

void mem_advise_huge(void *p, size_t size)
{
    const size_t page = HUGE_PAGE, skip = -(uintptr_t)p & (page - 1);

    if (size >= HUGE_FROM && size - skip >= page)
        (void)madvise((char *)p + skip, (size - skip) & ~(page - 1), MADV_HUGEPAGE);
}

static void *take(header *h, size_t size, mem_tag tag)
{
    if (!h) return NULL;
    *h = (header){size, (uint32_t)tag, is_big(size + sizeof *h) ? MARK_BIG : MARK_LIVE};
    atomic_fetch_add(&used[tag], size);
    return h + 1;
}

void *mem_alloc(size_t size, mem_tag tag)
{
    size_t all;
    if (must_fail() || !add_size(size, sizeof(header), &all)) return NULL;
    return take(is_big(all) ? big_map(all) : malloc(all), size, tag);
}

void *mem_calloc(size_t n, size_t size, mem_tag tag)
{
    size_t want, all;
    if (must_fail() || !mul_size(n, size, &want) || !add_size(want, sizeof(header), &all))
        return NULL;
    return take(is_big(all) ? big_map(all) : calloc(1, all), want, tag);
}

static void give_back(header *h, const header *was)
{
    if (was->mark == MARK_LIVE) {
        free(h);
        return;
    }
    const int rc = munmap(h, big_len(was->size + sizeof *h));
    assert(rc == 0);
    (void)rc;
}

/* realloc of a block that is big, or becomes it. */
static header *resize_big(header *h, const header *old, size_t all)
{
    const size_t had = old->size + sizeof *h;

    if (old->mark == MARK_BIG && is_big(all)) {
        const size_t len = big_len(all);
        if (len < all) return NULL;
        return big_advise(mremap(h, big_len(had), len, MREMAP_MAYMOVE), len);
    }
    header *fresh = is_big(all) ? big_map(all) : malloc(all);
    if (!fresh) return NULL;
    memcpy(fresh, h, had < all ? had : all);
    give_back(h, old);
    return fresh;
}

void *mem_realloc(void *p, size_t size, mem_tag tag)
{
    if (!p) return mem_alloc(size, tag);
    size_t all;
    if (must_fail() || !add_size(size, sizeof(header), &all)) return NULL;
    const header old = *header_of(p);
    header *h = (header *)p - 1;
    h = old.mark == MARK_BIG || is_big(all) ? resize_big(h, &old, all) : realloc(h, all);
    if (!h) return NULL;
    atomic_fetch_sub(&used[old.tag], old.size);
    return take(h, size, tag);
}

void mem_free(void *p)
{
    if (!p) return;
    header *h = header_of(p);
    const header was = *h;
    atomic_fetch_sub(&used[was.tag], was.size);
    h->mark = MARK_DEAD;
    give_back(h, &was);
}

/* Ends what was mapped at [all, all + n) but for [p, p + size). */
static void trim(char *all, size_t n, char *p, size_t size)
{
    if (p > all) (void)munmap(all, (size_t)(p - all));
    if (p + size < all + n) (void)munmap(p + size, n - size - (size_t)(p - all));
}

void *mem_map(size_t size, mem_tag tag)
{
    size_t all = size ? size : 1;
    if (must_fail()) return NULL;
    const size_t span = all;
    if (size >= HUGE_PAGE && !add_size(size, HUGE_PAGE, &all)) return NULL;
    char *p =
        mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
    if (all > span) { /* from the start of a huge page on */
        char *const at = p + (-(uintptr_t)p & (HUGE_PAGE - 1));
        const size_t page = (size_t)sysconf(_SC_PAGESIZE);
        trim(p, all, at, (span + page - 1) & ~(page - 1));
        p = at;
    }
    (void)madvise(p, span, MADV_HUGEPAGE); /* advice only */
    atomic_fetch_add(&used[tag], size);
    return p;
}

void mem_unmap(void *p, size_t size, mem_tag tag)
{
    if (!p) return;
    const int rc = munmap(p, size ? size : 1);
    assert(rc == 0);
    atomic_fetch_sub(&used[tag], size);
}

uint64_t mem_used(mem_tag tag)
{
    return atomic_load(&used[tag]);
}

uint64_t mem_used_all(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < MEM_TAG_COUNT; i++) sum += atomic_load(&used[i]);
    return sum;
}

void mem_fail_nth(uint64_t n)
{
    atomic_store(&fail_at, 0);
    atomic_store(&n_calls, 0);
    atomic_store(&fail_at, n);
}

uint64_t mem_calls(void)
{
    return atomic_load(&n_calls);
}

void mem_give_back_early(void)
{
#ifdef __GLIBC__
    enum { FROM = 1 << 20 }; /* a body of 64 KiB and its JSON still reuse what is there */
    /* mallopt wants no other thread beside it; mem_give_back_early is for main. */
    (void)mallopt(M_MMAP_THRESHOLD, FROM); /* NOLINT(concurrency-mt-unsafe) */
    (void)mallopt(M_TRIM_THRESHOLD, FROM); /* NOLINT(concurrency-mt-unsafe) */
#endif
}

void mem_trim(void)
{
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}
