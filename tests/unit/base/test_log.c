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
    assert_string_equal(s.line, "text=a level=error  [31m");
    log_event(LOG_INFO, "long", "%s", many);
    assert_int_equal(strlen(s.line), 1023);
    log_set(LOG_WARN, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels),
        cmocka_unit_test(one_line_an_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
