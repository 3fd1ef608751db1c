/* Stop strings: against a naive search over all ways to cut a text into tokens, and by hand. */
#include "test.h"

#include "base/num.h"
#include "base/rng.h"
#include "engine/stream.h"

/* A byte-level vocabulary of single letters and some pairs; "é" comes as two tokens of one byte. */
static const char tokenizer[] =
    "{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":null,"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,"
    "\"use_regex\":true},\"post_processor\":null,"
    "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,"
    "\"use_regex\":true},"
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"ba\":4,\"abc\":5,"
    "\"cab\":6,\"Ã\":7,\"©\":8},"
    "\"merges\":[\"a b\",\"b a\",\"ab c\",\"c ab\"]}}";
static const char *const piece[] = {"a", "b", "c", "ab", "ba", "abc", "cab"};

static tok *t;

static int setup(void **state)
{
    (void)state;
    cairn_diag dg = {0};
    if (tok_open_hf(str_of(tokenizer), (cairn_str){"", 0}, "test", &t, &dg) != CAIRN_OK)
        fail_msg("%s", dg.message);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tok_close(t);
    return 0;
}

/* What must be sent of a text: up to the stop string that is complete first; the longest of those
   complete at the same byte. */
static size_t naive(const char *text, const cairn_str *stop, size_t n_stop, bool *stopped)
{
    const size_t n = strlen(text);
    for (size_t end = 1; end <= n; end++) {
        size_t longest = 0;
        for (size_t i = 0; i < n_stop; i++)
            if (end >= stop[i].len &&
                memcmp(text + end - stop[i].len, stop[i].ptr, stop[i].len) == 0 &&
                stop[i].len > longest)
                longest = stop[i].len;
        if (longest) {
            *stopped = true;
            return end - longest;
        }
    }
    *stopped = false;
    return n;
}

/* Nothing is held that could have been sent: the held tail starts some stop string. */
static bool tail_may_match(cairn_str tail, const cairn_str *stop, size_t n_stop)
{
    for (size_t i = 0; i < n_stop; i++)
        if (stop[i].len > tail.len && memcmp(stop[i].ptr, tail.ptr, tail.len) == 0) return true;
    return tail.len == 0;
}

static void random_texts(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        char stops[4][8], text[200] = "";
        cairn_str stop[4];
        const size_t n_stop = 1 + rng_u64(seed, 0, 0) % 4;
        for (size_t i = 0; i < n_stop; i++) {
            const size_t len = 1 + rng_u64(seed, 1, i) % 6;
            for (size_t k = 0; k < len; k++)
                stops[i][k] = (char)('a' + rng_u64(seed, 2 + i, k) % (seed % 2 ? 2 : 3));
            stop[i] = (cairn_str){stops[i], len};
        }
        arena a;
        stream s;
        arena_init(&a, MEM_MISC);
        assert_ok(stream_init(&s, t, false, stop, n_stop, 30, &a, NULL));
        char sent[200];
        size_t n_sent = 0;
        for (uint64_t i = 0; i < 30 && !s.stopped; i++) {
            const int32_t id = (int32_t)(rng_u64(seed, 9, i) % 7);
            cairn_str out;
            strcat(text, piece[id]);
            assert_ok(stream_feed(&s, id, &out));
            memcpy(sent + n_sent, out.ptr, out.len);
            n_sent += out.len;
            const cairn_str tail = {text + n_sent, strlen(text) - n_sent};
            if (!s.stopped) assert_true(tail_may_match(tail, stop, n_stop));
        }
        if (!s.stopped) {
            cairn_str out;
            assert_ok(stream_end(&s, &out));
            memcpy(sent + n_sent, out.ptr, out.len);
            n_sent += out.len;
        }
        bool stopped;
        const size_t want = naive(text, stop, n_stop, &stopped);
        assert_int_equal(s.stopped, stopped);
        assert_int_equal(n_sent, want);
        assert_memory_equal(sent, text, want);
        if (stopped)
            assert_memory_equal(text + want, stop[s.stopped_by].ptr, stop[s.stopped_by].len);
        else
            assert_int_equal(s.stopped_by, -1);
        stream_deinit(&s);
        arena_deinit(&a);
    }
}

/* Half a character waits for its other half, and may then complete a stop string. */
static void characters(void **state)
{
    (void)state;
    arena a;
    stream s;
    cairn_str out, stop = STR_LIT("\xc3\xa9");
    arena_init(&a, MEM_MISC);
    assert_ok(stream_init(&s, t, false, &stop, 1, 10, &a, NULL));
    assert_ok(stream_feed(&s, 0, &out));
    assert_str(out, "a");
    assert_ok(stream_feed(&s, 7, &out));
    assert_str(out, "");
    assert_ok(stream_feed(&s, 8, &out));
    assert_str(out, "");
    assert_true(s.stopped);
    stream_deinit(&s);
    /* cut in the middle of a character: U+FFFD at the end */
    assert_ok(stream_init(&s, t, false, NULL, 0, 10, &a, NULL));
    assert_ok(stream_feed(&s, 1, &out));
    assert_str(out, "b");
    assert_ok(stream_feed(&s, 7, &out));
    assert_str(out, "");
    assert_ok(stream_end(&s, &out));
    assert_str(out, "\xef\xbf\xbd");
    stream_deinit(&s);
    arena_deinit(&a);
}

static void no_allocation_while_feeding(void **state)
{
    (void)state;
    arena a;
    stream s;
    cairn_str out, stop = STR_LIT("aaaaaaaaaaaaaaaaaaaaaaaaaaab");
    arena_init(&a, MEM_MISC);
    assert_ok(stream_init(&s, t, false, &stop, 1, 3000, &a, NULL));
    const uint64_t calls = mem_calls();
    for (int i = 0; i < 3000; i++) assert_ok(stream_feed(&s, i % 11 == 10 ? 2 : i % 3, &out));
    assert_int_equal(mem_calls(), calls);
    stream_deinit(&s);
    arena_deinit(&a);
}

static void limits(void **state)
{
    (void)state;
    static char big[CAIRN_MAX_STOP_BYTES + 1];
    arena a;
    stream s;
    cairn_diag dg;
    memset(big, 'x', sizeof big);
    const cairn_str bad[] = {{"", 0}, {big, sizeof big}};
    arena_init(&a, MEM_MISC);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(stream_init(&s, t, false, &bad[i], 1, 1, &a, &dg), CAIRN_E_ARG);
        assert_says(&dg, "stop string 0");
        stream_deinit(&s);
    }
    cairn_str many[CAIRN_MAX_STOP + 1];
    for (int i = 0; i <= CAIRN_MAX_STOP; i++) many[i] = STR_LIT("x");
    assert_int_equal(stream_init(&s, t, false, many, CAIRN_MAX_STOP + 1, 1, &a, &dg), CAIRN_E_ARG);
    stream_deinit(&s);
    arena_deinit(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_texts),
        cmocka_unit_test(characters),
        cmocka_unit_test(no_allocation_while_feeding),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests_name("stream", tests, setup, teardown);
}
