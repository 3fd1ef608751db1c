/* Kernel levels by name: which ones this machine runs, CAIRN_ISA and what a wrong one is told. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu_priv.h"
#include "backend/cpu/kern/kern.h"

static void test_names(void **state)
{
    (void)state;
    isa_level l;
    for (isa_level i = ISA_REF; i < ISA_COUNT; i++) {
        assert_true(isa_parse(isa_name(i), &l));
        assert_int_equal(l, i);
    }
    assert_false(isa_parse("pentium", &l));
    assert_false(isa_parse("", &l));
}

static void test_table(void **state)
{
    (void)state;
    kern k;
    assert_true(isa_runs(ISA_REF));
    for (isa_level i = ISA_REF; i < ISA_COUNT; i++) {
        kern_init(&k, i);
        assert_int_equal(k.level, isa_runs(i) ? i : isa_detect());
        assert_true(i <= isa_detect() || !isa_runs(i));
    }
}

static void test_list(void **state)
{
    (void)state;
    char all[128], few[6];
    isa_list(1u << ISA_REF | 1u << ISA_AVX2 | 1u << ISA_AMX, all, sizeof all);
    assert_string_equal(all, "ref, avx2, amx");
    isa_list(1u << ISA_REF | 1u << ISA_AVX2, few, sizeof few);
    assert_string_equal(few, "ref, ");
    isa_list((1u << ISA_COUNT) - 1, all, sizeof all);
    assert_true(strlen(all) + 1 < sizeof all);
}

/* Opens a device by option (`by_var` false) or by variable; what the message must hold if it fails. */
static void open_as(const char *name, bool by_var, const char *level, const char *message)
{
    cairn_diag dg = {0};
    dev *d = NULL;
    const dev_opts o = {CAIRN_COMPUTE_FAST, 1, by_var ? NULL : name};
    char here[128];
    setenv("CAIRN_ISA", by_var ? name : "nonsense", 1); /* an option goes before it */
    const cairn_status st = backend_cpu.open(&o, &d, &dg);
    unsetenv("CAIRN_ISA");
    assert_int_equal(st, level ? CAIRN_OK : CAIRN_E_ARG);
    if (level) {
        assert_string_equal(backend_cpu.isa(d), level);
        backend_cpu.close(d);
        return;
    }
    isa_list(isa_machine(), here, sizeof here);
    assert_non_null(strstr(dg.message, message));
    assert_non_null(strstr(dg.message, here));
}

static void test_choice(void **state)
{
    (void)state;
    open_as("", true, isa_name(isa_detect()), NULL);
    for (int by_var = 0; by_var < 2; by_var++) {
        open_as("pentium", by_var, NULL, "\"pentium\" is no kernel level: this machine runs ref");
        for (isa_level i = ISA_REF; i < ISA_COUNT; i++)
            open_as(isa_name(i), by_var, isa_runs(i) ? isa_name(i) : NULL,
                    by_var ? "CAIRN_ISA=\"" : "kernel level \"");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_table),
                                       cmocka_unit_test(test_list), cmocka_unit_test(test_choice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
