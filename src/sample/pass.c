/* Which passes a level has. */
#include "sample/pass.h"

#include "backend/cpu/kern/kern.h"
#include "base/machine.h"

#if defined(__x86_64__)
#define X86(p) p
#else
#define X86(p) &pass_ref
#endif

static const pass *pass_of(isa_level l)
{
    static const pass *const of[ISA_COUNT] = {
        [ISA_REF] = &pass_ref,
        [ISA_AVX2] = X86(&pass_avx2),
        [ISA_AVXVNNI] = X86(&pass_avx2),
        [ISA_AVX512] = X86(&pass_avx512),
        [ISA_AVX512VNNI] = X86(&pass_avx512),
        [ISA_AMX] = X86(&pass_avx512),
        /* NEON is every arm64's, so the plain ones are made of it */
        [ISA_NEON] = &pass_ref,
        [ISA_DOTPROD] = &pass_ref,
        [ISA_I8MM] = &pass_ref,
    };
    return of[l];
}

const pass *pass_here(void)
{
    const char *asked = machine_isa();
    isa_level l;
    return pass_of(asked && isa_parse(asked, &l) && isa_runs(l) ? l : isa_detect());
}
