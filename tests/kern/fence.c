/* Buffers whose end lies at a page that may not be touched and whose front is watched, so that a kernel
   that reads or writes outside is caught. */
#include "test.h"

#include "kern/fence.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "base/half.h"
#include "base/rng.h"

enum { PAGE = 4096, CANARY = 0xa5 };

static size_t span(size_t size)
{
    return (size + FENCE_FRONT + PAGE - 1) / PAGE * PAGE;
}

void *fence_new(size_t size)
{
    size_t n = span(size);
    uint8_t *m = mmap(NULL, n + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(m != MAP_FAILED);
    assert_int_equal(mprotect(m + n, PAGE, getenv("CAIRN_TEST_EMULATED") ? PROT_READ : PROT_NONE),
                     0);
    uint8_t *p = m + n - size;
    memset(p - FENCE_FRONT, CANARY, FENCE_FRONT);
    return p;
}

void fence_free(void *p, size_t size)
{
    uint8_t *b = p;
    for (int i = 1; i <= FENCE_FRONT; i++) assert_int_equal(b[-i], CANARY);
    munmap(b + size - span(size), span(size) + PAGE);
}

void fence_fill(float *x, size_t n, int kind, uint64_t seed)
{
    const bool near = kind == 0 || kind == 4; /* these ask for r alone, kinds 1 to 3 for u */
    const bool bits = kind >= 1 && kind <= 3;

    for (size_t i = 0; i < n; i++) {
        uint64_t u = near ? 0 : rng_u64(seed, (uint64_t)kind, i);
        uint32_t sign = (uint32_t)(u >> 63) << 31, mant = (uint32_t)u & 0x7fffff;
        float r = bits ? 0 : (float)(2 * rng_unit(seed, 9, i) - 1);
        switch (kind) {
        case 0:
            x[i] = r * 4;
            break;
        case 1:
            x[i] = f32_from_bits(sign | (uint32_t)((u >> 32) % 255) << 23 | mant);
            break;
        case 2:
            x[i] = f32_from_bits(sign | mant >> (u >> 32) % 23);
            break;
        case 3:
            x[i] = f32_from_bits(sign);
            break;
        case 4:
            x[i] = r * 100;
            break;
        default:
            x[i] = u % 7 ? r : u % 3 ? (u % 2 ? INFINITY : -INFINITY) : NAN;
            break;
        }
    }
}
