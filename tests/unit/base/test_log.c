/* Levels, one line an event, and silence without a sink. */
#include "test.h"

#include "base/buf.h"
#include "base/log.h"

typedef struct seen {
    int n;
    log_level level;
    char event[32], line[2000];
} seen;

static void sink(void *ctx, log_level level, const char *event, const char *line)
{
    seen *s = ctx;
    s->n++;
    s->level = level;
    buf b;
    buf_init(&b, MEM_MISC);
    buf_deinit(&b); /* a sink may call us */
    strncpy(s->event, event, sizeof s->event - 1);
    strncpy(s->line, line, sizeof s->line - 1);
}

static void levels(void **state)
{
    (void)state;
    seen s = {0};
    log_set(LOG_WARN, sink, &s);
    log_event(LOG_INFO, "quiet", "a=%d", 1);
    log_event(LOG_DEBUG, "quiet", "a=%d", 1);
    assert_int_equal(s.n, 0);
    log_event(LOG_WARN, "loud", "a=%d b=%s", 1, "x");
    log_event(LOG_ERROR, "louder", "%s", "");
    assert_int_equal(s.n, 2);
    assert_int_equal(s.level, LOG_ERROR);
    assert_string_equal(s.event, "louder");
    assert_string_equal(s.line, "");
    log_set(LOG_DEBUG, sink, &s);
    log_event(LOG_DEBUG, "all", "a=%d b=%s", 1, "x");
    assert_int_equal(s.n, 3);
    assert_string_equal(s.line, "a=1 b=x");
    log_set(LOG_DEBUG, NULL, NULL);
    log_event(LOG_ERROR, "nobody", "x=%d", 1);
    assert_int_equal(s.n, 3);
}

static void one_line_an_event(void **state)
{
    (void)state;
    seen s = {0};
    char many[3000];
    memset(many, 'm', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    log_set(LOG_INFO, sink, &s);
    log_event(LOG_INFO, "forged", "text=%s", "a\nlevel=error\r\x1b[31m");
    assert_string_equal(s.line, "text=\"a\\x0alevel=error\\x0d\\x1b[31m\"");
    log_event(LOG_INFO, "piece", "%s", "a\nb");
    assert_string_equal(s.line, "a b");
    log_event(LOG_INFO, "long", "%s", many);
    assert_int_equal(strlen(s.line), 1023);
    log_set(LOG_WARN, NULL, NULL);
}

/* Whatever a value holds, it is told from the rest of the line. */
static void quotes(void **state)
{
    (void)state;
    seen s = {0};
    char many[3000];
    log_set(LOG_INFO, sink, &s);
    log_event(LOG_INFO, "words", "a=%s b=%.*s c=%s d=%s", "/plain-1.gguf", 2, "xyz", "", "12");
    assert_string_equal(s.line, "a=/plain-1.gguf b=xy c=\"\" d=\"12\"");
    log_event(LOG_INFO, "hostile", "a=%s b=%s c=%s", "x b=1", "q\"\\", "k=v");
    assert_string_equal(s.line, "a=\"x b=1\" b=\"q\\\"\\\\\" c=\"k=v\"");
    log_event(LOG_INFO, "inside", "why=\"%s/%s\" n=%d", "say \"hi\"", "\x7f", -3);
    assert_string_equal(s.line, "why=\"say \\\"hi\\\"/\\x7f\" n=-3");
    log_event(LOG_INFO, "letters", "a=%s b=%s", "gr\xc3\xbc\xc3\x9f", "\xc3(\xc2\x9b\xff");
    assert_string_equal(s.line, "a=\"gr\xc3\xbc\xc3\x9f\" b=\"\\xc3(\\xc2\\x9b\\xff\"");
    log_event(LOG_INFO, "numbers", "%u %zu %lld %llu %016llx", 7U, (size_t)8, -9LL, 10ULL, 255ULL);
    assert_string_equal(s.line, "7 8 -9 10 00000000000000ff");
    memset(many, '\n', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    for (int n = 0; n < 9; n++) { /* wherever it is cut: whole escapes, and the quote at the end */
        log_event(LOG_INFO, "cut", "%.*s=%s end=%d", n, "abcdefghi", many, 1);
        const size_t len = strlen(s.line), from = (size_t)n + 2;
        assert_true(len <= 1023 && len > 1018);
        assert_int_equal(s.line[len - 1], '"');
        assert_int_equal((len - from - 1) % 4, 0);
    }
    log_set(LOG_WARN, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels),
        cmocka_unit_test(one_line_an_event),
        cmocka_unit_test(quotes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
