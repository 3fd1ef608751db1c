/* What the machine has, as levels of ours.  Built with no ISA flag. */
#include "backend/cpu/kern/kern.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    REQUEST_STATE = 0x1023, /* ARCH_REQ_XCOMP_PERM of arch_prctl */
    TILE_DATA = 18,         /* the component of a thread's state that tile registers are */
    /* Bits of cpuid, which compilers name differently. */
    TILE_AND_INT8 = 3 << 24,
    AVX_VNNI = 1 << 4,
};

static uint64_t xcr0(void)
{
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

static bool has(uint32_t reg, uint32_t bits)
{
    return (reg & bits) == bits;
}

/* Linux saves tile registers only for processes that ask; where it is too old or refuses, the level is
   not there.  To ask again is harmless. */
static bool has_amx(uint64_t os, uint32_t d7)
{
    return has(d7, TILE_AND_INT8) && (os >> 17 & 3) == 3 &&
           syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) == 0;
}

static bool has_avxvnni(void)
{
    uint32_t a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && has(a, AVX_VNNI);
}

enum { REF = 1u << ISA_REF, AVX2 = REF | 1u << ISA_AVX2 };

uint32_t isa_machine(void)
{
    uint32_t a, b, c, d, b7, c7, d7;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return REF;
    if (!has(c, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C)) return REF;
    const uint64_t os = xcr0(); /* 2, 4: xmm and ymm are saved; 0xe0: opmask and zmm too */
    if ((os & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &a, &b7, &c7, &d7)) return REF;
    if (!has(b7, bit_AVX2)) return REF;
    uint32_t m = AVX2 | (has_avxvnni() ? 1u << ISA_AVXVNNI : 0);
    if ((os & 0xe0) != 0xe0) return m;
    if (!has(b7, bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ)) return m;
    m |= 1u << ISA_AVX512;
    if (!has(c7, bit_AVX512VNNI)) return m;
    return m | 1u << ISA_AVX512VNNI | (has_amx(os, d7) ? 1u << ISA_AMX : 0);
}
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>

uint32_t isa_machine(void)
{
    uint32_t m = 1u << ISA_REF | 1u << ISA_NEON;
    if (!(getauxval(AT_HWCAP) & HWCAP_ASIMDDP)) return m;
    m |= 1u << ISA_DOTPROD;
    return getauxval(AT_HWCAP2) & HWCAP2_I8MM ? m | 1u << ISA_I8MM : m;
}
#else
uint32_t isa_machine(void)
{
    return 1u << ISA_REF;
}
#endif
