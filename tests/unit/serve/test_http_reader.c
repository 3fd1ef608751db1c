/* How long a client may take to read a long answer: by a clock that what it reads moves on, so that it reads at a rate
   of the test's choice, whatever the machine's. */
#include "test.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "serve/http.h"

static int64_t ahead_ms; /* of the real clock */

/* In place of the C library's. */
int clock_gettime(clockid_t id, struct timespec *out)
{
    const int rc = (int)syscall(SYS_clock_gettime, id, out);

    if (rc != 0 || id != CLOCK_MONOTONIC) return rc;
    out->tv_sec = ahead_ms / 1000; /* it stands still otherwise */
    out->tv_nsec = ahead_ms % 1000 * 1000000;
    return 0;
}

static uint64_t real_ms(void)
{
    struct timespec t = {0};

    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

enum { PART = 16 << 10 };

typedef struct story { /* one thread has it all */
    http_server *h;
    http_req *rq;
    int fd;            /* the client's */
    size_t left;       /* of the answer */
    size_t rate, step; /* bytes a second, and at once */
    size_t got;
    uint64_t read_ms; /* beyond whole milliseconds: bytes * 1000 not used yet */
    bool cut, ended;
    uint64_t end_ms;
} story;

static void go_on(void *user)
{
    static char part[PART];
    story *s = user;

    if (s->left == 0) {
        http_stream_end(s->rq);
        return;
    }
    s->left -= sizeof part;
    (void)http_stream_write(s->rq, (cairn_str){part, sizeof part});
}

static void on_gone(void *user)
{
    ((story *)user)->cut = true;
}

static void on_head(void *ctx, http_req *rq)
{
    (void)ctx, (void)rq;
}

static void on_serve(void *ctx, http_req *rq)
{
    story *s = ctx;

    s->rq = rq;
    http_on_gone(rq, on_gone, s);
    http_stream(rq, "application/json", NULL, 0);
    go_on(s);
    http_stream_more(rq, go_on, s);
}

static void on_refuse(void *ctx, http_req *rq, int status, const char *why)
{
    (void)ctx, (void)why;
    http_reply(rq, status, "text/plain", (cairn_str){0});
}

/* A turn of the loop: the client takes a step. */
static void on_woken(void *ctx)
{
    static char into[64 << 10];
    story *s = ctx;
    const ssize_t n = recv(s->fd, into, s->step, MSG_DONTWAIT);

    if (n > 0) {
        s->got += (size_t)n;
        s->read_ms += (uint64_t)n * 1000;
        ahead_ms += (int64_t)(s->read_ms / s->rate);
        s->read_ms %= s->rate;
    }
    s->ended = n == 0;
    if (s->cut || s->ended || real_ms() > s->end_ms)
        http_quit(s->h);
    else
        http_wake(s->h);
}

static void on_tick(void *ctx, uint64_t now_ms)
{
    (void)ctx, (void)now_ms;
}

static void play(story *s)
{
    static const char ask[] = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    const http_limits lim = {8, 10000, 10000, 1 << 20, 0, 0};
    const http_app app = {s, on_head, on_serve, on_refuse, on_woken, on_tick};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int room = 4096; /* the least: then little is acknowledged that is not read */
    cairn_diag dg = {0};

    ahead_ms = 1000;
    s->end_ms = real_ms() + TEST_WAIT_MS;
    assert_ok(http_open("127.0.0.1", 0, &lim, &app, &s->h, &dg));
    at.sin_port = htons((uint16_t)http_port(s->h));
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s->fd >= 0);
    assert_int_equal(setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
    assert_int_equal(connect(s->fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(send(s->fd, ask, sizeof ask - 1, 0), sizeof ask - 1);
    http_wake(s->h);
    assert_ok(http_run(s->h, &dg));
    assert_true(real_ms() <= s->end_ms);
    http_close(s->h);
    close(s->fd);
}

/* A byte now and then, each acknowledged: no reason to keep an answer for hours. */
static void a_trickle_is_cut(void **state)
{
    story s = {.left = 64 * PART, .rate = 1 << 10, .step = 256};

    (void)state;
    play(&s);
    assert_true(s.cut);
    assert_in_range(ahead_ms, 60000, 120000);
}

/* Twice the least rate: longer than a minute, and all of it. */
static void a_slow_link_is_served(void **state)
{
    enum { ALL = 768 * PART };
    story s = {.left = ALL, .rate = 128 << 10, .step = 64 << 10};

    (void)state;
    play(&s);
    assert_false(s.cut);
    assert_true(s.ended);
    assert_true(s.got > ALL);
    assert_true(ahead_ms > 90000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trickle_is_cut),
        cmocka_unit_test(a_slow_link_is_served),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
