/* cmocka plus what it lacks.  The one include that a test program starts with. */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/str.h"

/* Of every wait: only what hangs needs it, however busy the machine. */
enum { TEST_WAIT_MS = 60000 };

#define assert_ok(expr) assert_int_equal((expr), CAIRN_OK)
#define assert_str(s, z)                                                                           \
    do {                                                                                           \
        const cairn_str assert_s_ = (s);                                                           \
        assert_int_equal(assert_s_.len, strlen(z));                                                \
        assert_memory_equal(assert_s_.ptr, (z), assert_s_.len);                                    \
    } while (0)
#define assert_says(dg, part) assert_non_null(strstr((dg)->message, (part)))

/* CAIRN_TEST_PART=N asks for about one case in N, always the same: for sanitizers and emulators, under which
   .ci/run tries the kernels too.  CAIRN_TEST_EMULATED: the masked loads of emulators read the lanes that are
   masked off too, so a page that fences a buffer may be read then. */
static inline uint64_t test_part(void)
{
    static uint64_t part;
    const char *given = part ? NULL : getenv("CAIRN_TEST_PART");
    if (part == 0) part = given ? strtoull(given, NULL, 10) : 1;
    return part ? part : 1;
}

/* True for a case that this run leaves out; never for the first. */
static inline bool left_out(void)
{
    static uint64_t n;
    return test_part() > 1 && (n++ * 0x9e3779b97f4a7c15u >> 32) % test_part() != 0;
}

/* Runs `body` with its 1st, 2nd, … request for memory failing, until it succeeds; each time it must
   answer E_NOMEM and leave no byte behind.  Returns the number of failures seen. */
static inline size_t fault_loop(cairn_status (*body)(void *ctx), void *ctx)
{
    for (uint64_t n = 1;; n++) {
        const uint64_t before = mem_used_all();
        mem_fail_nth(n);
        const cairn_status st = body(ctx);
        const bool reached = mem_calls() >= n;
        mem_fail_nth(0);
        assert_int_equal(mem_used_all(), before);
        if (!reached) {
            assert_int_equal(st, CAIRN_OK);
            print_message("fault loop: %d requests failed in turn\n", (int)(n - 1));
            return (size_t)(n - 1);
        }
        assert_int_equal(st, CAIRN_E_NOMEM);
    }
}

#endif
