/* The only caller of malloc.  Every call carries a tag; counters give exact bytes by tag. */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEM_TAG_LIST(X)                                                                            \
    X(MISC, "misc")                                                                                \
    X(IO, "io")                                                                                    \
    X(MODEL, "model")                                                                              \
    X(WEIGHTS, "weights")                                                                          \
    X(CACHE, "cache")                                                                              \
    X(SCRATCH, "scratch")                                                                          \
    X(TEXT, "text")                                                                                \
    X(JSON, "json")                                                                                \
    X(ENGINE, "engine")                                                                            \
    X(SERVE, "serve")

typedef enum mem_tag {
#define MEM_TAG_ENUM(name, text) MEM_##name,
    MEM_TAG_LIST(MEM_TAG_ENUM)
#undef MEM_TAG_ENUM
        MEM_TAG_COUNT
} mem_tag;

/* All return NULL when there is no memory (or the hook says so); 16-byte aligned, never zeroed
   unless said.  A size of 0 gives a unique pointer. */
void *mem_alloc(size_t size, mem_tag tag);
void *mem_calloc(size_t n, size_t size, mem_tag tag); /* zeroed; NULL if n·size overflows */
void *mem_realloc(void *p, size_t size, mem_tag tag); /* p may be NULL; p is kept on failure */
void mem_free(void *p);                               /* for the three above; NULL is fine */

/* Big spans straight from the system: zeroed, lazily resident, huge pages advised; page-aligned, and at
   a huge page's start if large enough for one. */
void *mem_map(size_t size, mem_tag tag);
void mem_unmap(void *p, size_t size, mem_tag tag);

/* Advice that a big block from elsewhere will be used as a whole; the functions above give it themselves. */
void mem_advise_huge(void *p, size_t size);

/* For a process that is to stay within a budget: the allocator gives freed blocks of 1 MiB and more back at once, and
   the ends of its heaps, whatever was freed before.  By itself it keeps all that is smaller than the largest block
   that it ever mapped and freed, up to 32 MiB: 14 MB after two models had come and gone.  Once, before threads. */
void mem_give_back_early(void);
/* Gives back all pages that hold nothing: some milliseconds, after much was freed. */
void mem_trim(void);

/* Bytes live now.  By tag is for a report of who holds memory; so far the tests are its callers. */
uint64_t mem_used(mem_tag tag);
uint64_t mem_used_all(void);

/* Test hook: the n-th call from now fails (1 = the next), once; 0 turns it off.  Answers how many
   calls were made since it was set. */
void mem_fail_nth(uint64_t n);
uint64_t mem_calls(void);

#endif
