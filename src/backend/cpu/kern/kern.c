/* Fills the kernel table by rising levels, and names them. */
#include "backend/cpu/kern/kern.h"

#include <assert.h>
#include <string.h>

static const char *const names[ISA_COUNT] = {"ref", "haswell", "skylakex", "icelake", "sapphire"};

const char *isa_name(isa_level l)
{
    assert(l < ISA_COUNT);
    return names[l];
}

bool isa_parse(const char *name, isa_level *out)
{
    for (isa_level l = ISA_REF; l < ISA_COUNT; l++)
        if (strcmp(name, names[l]) == 0) {
            *out = l;
            return true;
        }
    return false;
}

static void fill_ref(kern *k)
{
    kern_vec_ref(&k->vec);
    kern_attend_ref(&k->vec);
    kern_delta_ref(&k->vec);
    kern_linear_ref(&k->lin);
}

#if defined(__x86_64__)
static void fill_x86(kern *k)
{
    if (k->level < ISA_HASWELL) return;
    kern_vec_avx2(&k->vec);
    kern_attend_avx2(&k->vec);
    kern_delta_avx2(&k->vec);
    kern_linear_avx2(&k->lin);
    if (k->level < ISA_SKYLAKEX) return;
    kern_vec_avx512(&k->vec);
    kern_attend_avx512(&k->vec);
    kern_delta_avx512(&k->vec);
    kern_linear_avx512(&k->lin);
    if (k->level < ISA_ICELAKE) return;
    kern_linear_avx512vnni(&k->lin);
    if (k->level < ISA_SAPPHIRE) return;
    kern_linear_amx(&k->lin);
}
#else
static void fill_x86(kern *k)
{
    (void)k;
}
#endif

void kern_init(kern *k, isa_level max)
{
    isa_level machine = isa_detect();
    memset(k, 0, sizeof *k);
    k->level = max < machine ? max : machine;
    fill_ref(k);
    fill_x86(k);
}
