/* The reader of HTTP heads and chunks: however the bytes are cut, the findings are the same. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "serve/http_head.h"

typedef struct head_case {
    const char *text;
    int status; /* 0: taken */
    const char *path;
} head_case;

static const head_case heads[] = {
    {"GET /a%2Fb?c HTTP/1.1\r\nHost: x\r\n\r\n", 0, "/a/b"},
    {"\r\nPOST /x HTTP/1.1\r\nhost:x\r\nContent-Length: 12\r\n\r\n", 0, "/x"},
    {"OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n", 0, "*"},
    {"GET https://a.b:1/c HTTP/1.0\r\n\r\n", 0, "/c"},
    {"GET http://a.b HTTP/1.1\r\nHost: x\r\n\r\n", 400, NULL},
    {"GET x HTTP/1.1\r\nHost: x\r\n\r\n", 400, NULL},
    {"GET /%0 HTTP/1.1\r\nHost: x\r\n\r\n", 400, NULL},
    {"GETTTTTTTTTTTTTTTTTTTTT / HTTP/1.1\r\nHost: x\r\n\r\n", 501, NULL},
    {"GET / HTTP/1.2\r\nHost: x\r\n\r\n", 505, NULL},
    {"GET / HTTP/11\r\nHost: x\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", 501, NULL},
    {"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nHost: x\r\n y\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\nHost: x\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\r\nHost: x\r\n\r\n", 400, NULL},
};

/* Fed in steps of `step` bytes, the text moving each time, as a growing buffer does. */
static head_result feed(http_head *h, const char *text, size_t n, size_t step, char **bytes)
{
    head_result r = HEAD_MORE;
    char *p = malloc(n + 1);

    for (size_t at = 0; at < n && r == HEAD_MORE;) {
        const size_t more = step < n - at ? step : n - at;
        char *moved = malloc(n + 1);
        memcpy(moved, p, at);
        memcpy(moved + at, text + at, more);
        free(p);
        p = moved;
        at += more;
        r = http_head_feed(h, p, at);
    }
    *bytes = p;
    return r;
}

static void test_heads(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        for (size_t step = 1; step <= strlen(heads[i].text); step++) {
            http_head h = {0};
            char *p;
            const head_result r = feed(&h, heads[i].text, strlen(heads[i].text), step, &p);
            assert_int_equal(r, heads[i].status ? HEAD_REFUSED : HEAD_DONE);
            assert_int_equal(h.status, heads[i].status);
            if (heads[i].path) assert_string_equal(p + h.path, heads[i].path);
            if (heads[i].status) assert_non_null(h.why);
            free(p);
        }
}

static void test_fields(void **state)
{
    static const char text[] = "PUT /p HTTP/1.1\r\nHost: h\r\nX-One:  a b\t \r\nx-one: second\r\n"
                               "Connection: a, Close\r\nExpect: 100-Continue\r\n"
                               "Content-Length: 0042\r\n\r\nrest";
    http_head h = {0};
    char *p;

    (void)state;
    assert_int_equal(feed(&h, text, sizeof text - 1, sizeof text, &p), HEAD_DONE);
    assert_int_equal(h.len, sizeof text - 1 - 4);
    assert_string_equal(h.method, "PUT");
    assert_string_equal(http_head_find(&h, p, "X-ONE"), "a b");
    assert_null(http_head_find(&h, p, "X-On"));
    assert_true(h.close && h.expects && h.has_length && !h.chunked && !h.old);
    assert_int_equal(h.length, 42);
    free(p);
}

/* A fault does not wait for the end of its head. */
static void test_at_once(void **state)
{
    char text[] = "GET / HTTP/1.1\r\nA b: c\r\n", tls[] = "\x16\x03";
    http_head h = {0}, t = {0};

    (void)state;
    assert_int_equal(http_head_feed(&h, text, sizeof text - 1), HEAD_REFUSED);
    assert_int_equal(http_head_feed(&t, tls, 2), HEAD_REFUSED);
}

static void test_limits(void **state)
{
    static char p[HEAD_MAX_BYTES + 100];
    http_head h = {0};
    size_t n;

    (void)state;
    memset(p, 'a', sizeof p);
    memcpy(p, "GET /", 5);
    assert_int_equal(http_head_feed(&h, p, sizeof p), HEAD_REFUSED);
    assert_int_equal(h.status, 414);
    h = (http_head){0};
    n = strlen(strcpy(p, "GET / HTTP/1.1\r\nA: "));
    memset(p + n, 'a', sizeof p - n);
    assert_int_equal(http_head_feed(&h, p, sizeof p), HEAD_REFUSED);
    assert_int_equal(h.status, 431);
    h = (http_head){0};
    n = strlen(strcpy(p, "GET / HTTP/1.1\r\n"));
    for (int i = 0; i <= HEAD_MAX_FIELDS; i++) n += (size_t)sprintf(p + n, "A: b\r\n");
    assert_int_equal(http_head_feed(&h, p, n), HEAD_REFUSED);
    assert_int_equal(h.status, 431);
}

typedef struct chunk_case {
    const char *text, *data; /* NULL: refused */
    size_t used;
} chunk_case;

static const chunk_case chunked[] = {
    {"3\r\nabc\r\n0\r\n\r\nnext", "abc", 13},
    {"003;x=\"y\"\r\nabc\r\n1\r\nd\r\n0\r\nA: b\r\n\r\n", "abcd", 33},
    {"A\r\n0123456789\r\n00\r\n\r\n", "0123456789", 21},
    {"0\r\n\r\n", "", 5},
    {"\r\n", NULL, 0},
    {"3\r\nabcd\r\n", NULL, 0},
    {"3 \r\nabc\r\n", NULL, 0},
    {"3\nabc\r\n", NULL, 0},
    {"0x3\r\nabc\r\n", NULL, 0},
    {"11111111111111111\r\n", NULL, 0},
    {"3;\x01\r\n", NULL, 0},
    {"0\r\n\rx", NULL, 0},
    {"0\r\nA: \x7F\r\n\r\n", NULL, 0},
};

static void test_chunks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof chunked / sizeof chunked[0]; i++)
        for (size_t step = 1; step <= strlen(chunked[i].text); step++) {
            const chunk_case *c = &chunked[i];
            const size_t n = strlen(c->text);
            http_chunks k = {0};
            char got[64] = "";
            size_t at = 0, used = 1;
            while (at < n && used && k.state != CHUNK_END && k.state != CHUNK_BAD) {
                cairn_str data;
                used = http_chunks_feed(&k, c->text + at, step < n - at ? step : n - at, &data);
                strncat(got, data.ptr, data.len);
                at += used;
            }
            assert_int_equal(k.state, c->data ? CHUNK_END : CHUNK_BAD);
            if (c->data) assert_string_equal(got, c->data);
            if (c->data) assert_int_equal(at, c->used);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heads),   cmocka_unit_test(test_fields),
        cmocka_unit_test(test_at_once), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
