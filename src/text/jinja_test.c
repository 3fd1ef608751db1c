/* The tests after `is`. */
#include "text/jinja_run.h"

#define TEST(name) static bool name(jrun *r, jv in, const jv *arg, jv *out)
#define UNUSED()   ((void)r, (void)arg)

TEST(t_defined)
{
    UNUSED();
    *out = jv_bool(in.t != J_UNDEF);
    return true;
}
TEST(t_undefined)
{
    UNUSED();
    *out = jv_bool(in.t == J_UNDEF);
    return true;
}
TEST(t_none)
{
    UNUSED();
    *out = jv_bool(in.t == J_NONE);
    return true;
}
TEST(t_boolean)
{
    UNUSED();
    *out = jv_bool(in.t == J_BOOL);
    return true;
}
TEST(t_true)
{
    UNUSED();
    *out = jv_bool(in.t == J_BOOL && in.u.b);
    return true;
}
TEST(t_false)
{
    UNUSED();
    *out = jv_bool(in.t == J_BOOL && !in.u.b);
    return true;
}
TEST(t_integer)
{
    UNUSED();
    *out = jv_bool(in.t == J_INT || in.t == J_BIG);
    return true;
}
TEST(t_float)
{
    UNUSED();
    *out = jv_bool(in.t == J_FLOAT);
    return true;
}
TEST(t_number)
{
    UNUSED();
    *out = jv_bool(jv_is_num(in));
    return true;
}
TEST(t_string)
{
    UNUSED();
    *out = jv_bool(in.t == J_STR);
    return true;
}
TEST(t_mapping)
{
    UNUSED();
    *out = jv_bool(in.t == J_DICT);
    return true;
}
TEST(t_sequence)
{
    UNUSED();
    *out = jv_bool(in.t == J_STR || in.t == J_LIST || in.t == J_TUPLE || in.t == J_DICT ||
                   in.t == J_RANGE || in.t == J_UNDEF);
    return true;
}
TEST(t_iterable)
{
    UNUSED();
    *out = jv_bool(jv_can_iter(in));
    return true;
}
TEST(t_callable)
{
    UNUSED();
    *out = jv_bool(in.t == J_UNDEF || in.t == J_FUNC || in.t == J_METHOD || in.t == J_MACRO ||
                   in.t == J_LOOP || in.t == J_JOINER);
    return true;
}
TEST(t_escaped)
{
    UNUSED();
    *out = jv_bool(in.t == J_STR && in.flag & J_SAFE);
    return true;
}
TEST(t_sameas)
{
    (void)r;
    *out = jv_bool(jv_is_same(in, arg[0]));
    return true;
}

static bool modulo_is(jrun *r, jv in, jv by, int64_t want, jv *out)
{
    jv m;
    bool same;
    if (!jv_binary(r, TK_MOD, in, by, &m) || !jv_eq(r, m, jv_int(want), &same)) return false;
    *out = jv_bool(same);
    return true;
}

TEST(t_odd)
{
    (void)arg;
    return modulo_is(r, in, jv_int(2), 1, out);
}
TEST(t_even)
{
    (void)arg;
    return modulo_is(r, in, jv_int(2), 0, out);
}
TEST(t_divisibleby)
{
    return modulo_is(r, in, arg[0], 0, out);
}

static bool text_is(jrun *r, jv in, int what, jv *out)
{
    cairn_str s;
    if (!jv_to_text(r, in, &s) || !jbytes(r, s.len)) return false;
    *out = jv_bool(jtext_is(s, what));
    return true;
}

TEST(t_lower)
{
    (void)arg;
    return text_is(r, in, IS_LOWER, out);
}
TEST(t_upper)
{
    (void)arg;
    return text_is(r, in, IS_UPPER, out);
}
TEST(t_in)
{
    bool yes;
    if (!jv_contains(r, in, arg[0], &yes)) return false;
    *out = jv_bool(yes);
    return true;
}
TEST(t_filter)
{
    (void)arg;
    *out = jv_bool(in.t == J_STR && jfilter_find(jv_text(in)));
    return jv_hashable(r, in);
}
TEST(t_test)
{
    (void)arg;
    *out = jv_bool(in.t == J_STR && jtest_find(jv_text(in)));
    return jv_hashable(r, in);
}

static bool compare(jrun *r, jv a, jv b, int op, jv *out)
{
    bool yes;
    if (!jv_cmp(r, a, b, op, &yes)) return false;
    *out = jv_bool(yes);
    return true;
}

TEST(t_eq)
{
    return compare(r, in, arg[0], TK_EQ, out);
}
TEST(t_ne)
{
    return compare(r, in, arg[0], TK_NE, out);
}
TEST(t_lt)
{
    return compare(r, in, arg[0], TK_LT, out);
}
TEST(t_le)
{
    return compare(r, in, arg[0], TK_LE, out);
}
TEST(t_gt)
{
    return compare(r, in, arg[0], TK_GT, out);
}
TEST(t_ge)
{
    return compare(r, in, arg[0], TK_GE, out);
}

static const jfn tests[] = {{"defined", t_defined, NULL, ""},
                            {"undefined", t_undefined, NULL, ""},
                            {"none", t_none, NULL, ""},
                            {"boolean", t_boolean, NULL, ""},
                            {"true", t_true, NULL, ""},
                            {"false", t_false, NULL, ""},
                            {"integer", t_integer, NULL, ""},
                            {"float", t_float, NULL, ""},
                            {"number", t_number, NULL, ""},
                            {"string", t_string, NULL, ""},
                            {"mapping", t_mapping, NULL, ""},
                            {"sequence", t_sequence, NULL, ""},
                            {"iterable", t_iterable, NULL, ""},
                            {"callable", t_callable, NULL, ""},
                            {"escaped", t_escaped, NULL, ""},
                            {"sameas", t_sameas, NULL, "other"},
                            {"odd", t_odd, NULL, ""},
                            {"even", t_even, NULL, ""},
                            {"divisibleby", t_divisibleby, NULL, "num"},
                            {"lower", t_lower, NULL, ""},
                            {"upper", t_upper, NULL, ""},
                            {"in", t_in, NULL, "seq"},
                            {"filter", t_filter, NULL, ""},
                            {"test", t_test, NULL, ""},
                            {"eq", t_eq, NULL, "b"},
                            {"equalto", t_eq, NULL, "b"},
                            {"==", t_eq, NULL, "b"},
                            {"ne", t_ne, NULL, "b"},
                            {"!=", t_ne, NULL, "b"},
                            {"lt", t_lt, NULL, "b"},
                            {"lessthan", t_lt, NULL, "b"},
                            {"<", t_lt, NULL, "b"},
                            {"le", t_le, NULL, "b"},
                            {"<=", t_le, NULL, "b"},
                            {"gt", t_gt, NULL, "b"},
                            {"greaterthan", t_gt, NULL, "b"},
                            {">", t_gt, NULL, "b"},
                            {"ge", t_ge, NULL, "b"},
                            {">=", t_ge, NULL, "b"}};

const jfn *jtest_find(cairn_str name)
{
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (str_is(name, tests[i].name)) return &tests[i];
    return NULL;
}
