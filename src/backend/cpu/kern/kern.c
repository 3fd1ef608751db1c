/* Fills the kernel table by rising levels, and names them. */
#include "backend/cpu/kern/kern.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void fill_ref(kern *k)
{
    kern_vec_ref(&k->vec);
    kern_attend_ref(&k->vec);
    kern_code_ref(&k->vec);
    kern_delta_ref(&k->vec);
    kern_linear_ref(&k->lin);
}

#if defined(__x86_64__)
static void fill_avx2(kern *k)
{
    kern_vec_avx2(&k->vec);
    kern_attend_avx2(&k->vec);
    kern_code_avx2(&k->vec);
    kern_delta_avx2(&k->vec);
    kern_linear_avx2(&k->lin);
}

static void fill_avxvnni(kern *k)
{
    kern_linear_avxvnni(&k->lin);
}

static void fill_avx512(kern *k)
{
    kern_vec_avx512(&k->vec);
    kern_attend_avx512(&k->vec);
    kern_code_avx512(&k->vec);
    kern_delta_avx512(&k->vec);
    kern_linear_avx512(&k->lin);
}

static void fill_avx512vnni(kern *k)
{
    kern_linear_avx512vnni(&k->lin);
}

static void fill_amx(kern *k)
{
    kern_linear_amx(&k->lin);
}
#define X86(fill) fill
#else
#define X86(fill) NULL
#endif

#if defined(__aarch64__)
static void fill_neon(kern *k)
{
    kern_vec_neon(&k->vec);
    kern_attend_neon(&k->vec);
    kern_delta_neon(&k->vec);
    kern_linear_neon(&k->lin);
}

static void fill_dotprod(kern *k)
{
    kern_linear_dotprod(&k->lin);
}

static void fill_i8mm(kern *k)
{
    kern_linear_i8mm(&k->lin);
}
#define ARM(fill) fill
#else
#define ARM(fill) NULL
#endif

/* A level is what it stands on, then its own slots; NULL: of another machine. */
static const struct {
    const char *name;
    isa_level on;
    void (*fill)(kern *k);
} levels[ISA_COUNT] = {
    [ISA_REF] = {"ref", ISA_REF, fill_ref},
    [ISA_AVX2] = {"avx2", ISA_REF, X86(fill_avx2)},
    [ISA_AVXVNNI] = {"avxvnni", ISA_AVX2, X86(fill_avxvnni)},
    [ISA_AVX512] = {"avx512", ISA_AVX2, X86(fill_avx512)},
    [ISA_AVX512VNNI] = {"avx512vnni", ISA_AVX512, X86(fill_avx512vnni)},
    [ISA_AMX] = {"amx", ISA_AVX512VNNI, X86(fill_amx)},
    [ISA_NEON] = {"neon", ISA_REF, ARM(fill_neon)},
    [ISA_DOTPROD] = {"dotprod", ISA_NEON, ARM(fill_dotprod)},
    [ISA_I8MM] = {"i8mm", ISA_DOTPROD, ARM(fill_i8mm)},
};

const char *isa_name(isa_level l)
{
    assert(l < ISA_COUNT);
    return levels[l].name;
}

bool isa_parse(const char *name, isa_level *out)
{
    for (isa_level l = ISA_REF; l < ISA_COUNT; l++)
        if (strcmp(name, levels[l].name) == 0) {
            *out = l;
            return true;
        }
    return false;
}

bool isa_runs(isa_level l)
{
    return isa_machine() >> l & 1;
}

isa_level isa_detect(void)
{
    isa_level best = ISA_REF;
    for (isa_level l = ISA_REF; l < ISA_COUNT; l++)
        if (isa_runs(l)) best = l;
    return best;
}

void isa_list(uint32_t mask, char *out, size_t size)
{
    size_t n = 0;
    out[0] = 0;
    for (isa_level l = ISA_REF; l < ISA_COUNT && n < size; l++) {
        if (!(mask >> l & 1)) continue;
        const int more = snprintf(out + n, size - n, "%s%s", n ? ", " : "", levels[l].name);
        if (more > 0) n += (size_t)more;
    }
}

void kern_init(kern *k, isa_level l)
{
    isa_level up[ISA_COUNT];
    int n = 0;
    memset(k, 0, sizeof *k);
    k->level = isa_runs(l) ? l : isa_detect();
    for (l = k->level; l != ISA_REF; l = levels[l].on) up[n++] = l;
    fill_ref(k);
    while (n > 0) levels[up[--n]].fill(k);
}
