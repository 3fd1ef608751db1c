/* Load on a server of OpenAI's chat completions, from one thread: how much it answers, and when.

     bench_serve PORT [flags]     --help lists them

   Request k is a function of the seed and k alone, so two servers get the same ones in the same order.  Closed loop: so
   many clients, each of which asks again when it has its answer.  Open loop (--rate): requests begin at random
   moments, whatever became of those before, and their times count from then.  Answers have a length that is set
   (ignore_eos), so that both servers do the same work.

   What is counted lies between the warm-up and the end: pieces of text that arrived then, first tokens and gaps that
   ended then.  A piece is a token but where one shows no text: `tokens` is corrected by the ratio that whole answers
   have in their `usage`.  Printed: one JSON object. */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/flags.h"
#include "base/num.h"
#include "base/rng.h"
#include "reply_lines.h"

enum {
    MAX_CLIENTS = 4096,
    MAX_IDLE = 20000,
    READ_BYTES = 1 << 16,
    IDLE_ASKS_S = 20,   /* servers close what was silent for a minute */
    STREAM_LENGTHS = 1, /* streams of the random numbers */
    STREAM_WORDS = 2,
    STREAM_ARRIVALS = 3
};

typedef struct range {
    int64_t lo, hi;
} range;

static struct {
    int64_t clients, requests, shared, repeat, leave, idle, seed, top_k;
    double rate, seconds, warm, temp;
    const char *words, *tokens, *model, *say;
    bool whole, fresh, help;
    range prompt, answer;
    struct sockaddr_in to;
} opt = {.clients = 8,
         .seconds = 10,
         .warm = 2,
         .temp = 0.8,
         .top_k = 40,
         .words = "16:512",
         .tokens = "16:128",
         .seed = 1};

/* Samples, in ms. */
typedef struct samples {
    double *v;
    size_t n, room;
} samples;

typedef struct client {
    int fd;    /* -1: not connected */
    bool asks; /* its request is on its way, or its reply */
    bool gone, failed;
    reply reply;
    buf out; /* the request */
    size_t sent;
    double due, last; /* s: when it was to begin, when its last piece came */
    int64_t pieces, leave_at;
    int64_t used, prompt, cached; /* as the usage says; -1: not yet */
    char why[300];                /* the error */
} client;

static client *clients;
static int *idle_fd;
static int poll_fd;
static double t_start, t_count, t_end, t_now; /* s; now: of the last read */
static samples first, gap, total;
static struct {
    int64_t begun, done, errors, refused, left, late, pieces, prompt, cached;
    int64_t done_pieces, done_tokens; /* of whole answers */
    int64_t idle_alive;
} sum;

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_serve: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void add(samples *s, double seconds)
{
    if (s->n == s->room) {
        s->room = s->room ? s->room * 2 : 4096;
        s->v = mem_realloc(s->v, s->room * sizeof *s->v, MEM_MISC);
        if (!s->v) die("memory");
    }
    s->v[s->n++] = seconds * 1e3;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double part(const samples *s, double p)
{
    return s->n ? s->v[min_size(s->n - 1, (size_t)((double)s->n * p))] : 0;
}

static bool counts(double now)
{
    return now >= t_count && now < t_end;
}

/* Lengths spread evenly over their logarithms: many short ones, some long. */
static int64_t length(range r, int64_t k, uint64_t which)
{
    const double u = rng_unit((uint64_t)opt.seed, STREAM_LENGTHS, (uint64_t)k * 4 + which);
    return (int64_t)((double)r.lo * pow((double)r.hi / (double)r.lo, u) + 0.5);
}

static const char *const word[] = {"the",   "of",    "and",   "river", "table", "green", "house",
                                   "light", "under", "seven", "paper", "stone", "water", "after",
                                   "music", "plain", "north", "small", "every", "where", "glass",
                                   "round", "field", "their", "first", "night", "early", "right",
                                   "sound", "horse", "never", "place"};
enum { WORDS = sizeof word / sizeof *word };

static void put_words(buf *b, uint64_t seed, int64_t k, int64_t n)
{
    uint64_t bits = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i % 12 == 0) bits = rng_u64(seed, STREAM_WORDS, (uint64_t)(k << 20 | i));
        buf_puts(b, word[bits % WORDS]);
        buf_byte(b, ' ');
        bits /= WORDS;
    }
}

static void write_request(client *c, int64_t k)
{
    const int64_t same = opt.repeat ? k % opt.repeat : k; /* whose prompt */
    const int64_t n = length(opt.answer, k, 1);
    buf body = {0};
    buf_init(&body, MEM_MISC);
    buf_printf(&body, "{\"model\":\"%s\",\"messages\":[", opt.model);
    if (opt.shared) {
        buf_puts(&body, "{\"role\":\"system\",\"content\":\"");
        put_words(&body, (uint64_t)opt.seed + 1, 0, opt.shared);
        buf_puts(&body, "\"},");
    }
    buf_printf(&body, "{\"role\":\"user\",\"content\":\"%lld ", (long long)same);
    put_words(&body, (uint64_t)opt.seed, same + 1, length(opt.prompt, same, 0));
    if (opt.say) buf_puts(&body, opt.say); /* plain words, as nothing is escaped */
    buf_printf(&body,
               "\"}],\"max_tokens\":%lld,\"ignore_eos\":true,\"temperature\":%g,\"top_k\":%lld,"
               "\"top_p\":0.95,\"seed\":%lld",
               (long long)n, opt.temp, (long long)opt.top_k, (long long)k);
    if (!opt.whole) buf_puts(&body, ",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    buf_byte(&body, '}');
    buf_clear(&c->out);
    buf_printf(&c->out,
               "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
               "application/json\r\n"
               "Content-Length: %zu\r\n%s\r\n",
               body.len, opt.fresh ? "Connection: close\r\n" : "");
    buf_str(&c->out, buf_view(&body));
    if (buf_status(&c->out) != CAIRN_OK || buf_status(&body) != CAIRN_OK) die("memory");
    buf_deinit(&body);
    const bool leaves =
        (int64_t)(rng_unit((uint64_t)opt.seed, STREAM_LENGTHS, (uint64_t)k * 4 + 2) * 100) <
        opt.leave;
    c->leave_at = leaves ? length((range){1, n}, k, 3) : 0;
}

static int dial(void)
{
    const int one = 1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) die("socket");
    if (connect(fd, (struct sockaddr *)&opt.to, sizeof opt.to)) die("connect");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void hang_up(client *c)
{
    if (c->fd >= 0) (void)close(c->fd);
    c->fd = -1;
    c->asks = false;
}

static void watch(const client *c, bool writes)
{
    struct epoll_event ev = {.events = EPOLLIN | (writes ? (uint32_t)EPOLLOUT : 0),
                             .data.u32 = (uint32_t)(c - clients)};
    if (epoll_ctl(poll_fd, EPOLL_CTL_MOD, c->fd, &ev)) die("epoll_ctl");
}

static void push(client *c)
{
    while (c->sent < c->out.len) {
        const ssize_t n =
            send(c->fd, c->out.ptr + c->sent, c->out.len - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) return watch(c, true);
        if (n <
            0) { /* a kept connection that the server has closed meanwhile: the reply will say so */
            c->sent = c->out.len;
            break;
        }
        c->sent += (size_t)n;
    }
    watch(c, false);
}

static void begin(client *c, double due)
{
    if (c->fd < 0) {
        struct epoll_event ev = {.events = EPOLLIN, .data.u32 = (uint32_t)(c - clients)};
        c->fd = dial();
        if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &ev)) die("epoll_ctl");
    }
    write_request(c, sum.begun++);
    reply_begin(&c->reply);
    c->asks = true;
    c->sent = 0;
    c->gone = c->failed = false;
    c->why[0] = '\0';
    c->pieces = 0;
    c->used = c->prompt = c->cached = -1;
    c->due = c->last = due;
    push(c);
}

static void finish(client *c, double now)
{
    if (c->reply.status == 429 || c->reply.status == 503)
        sum.refused++;
    else if (c->reply.status != 200 || c->failed || c->used < 0) {
        if (sum.errors++ == 0)
            (void)fprintf(stderr, "bench_serve: status %d: %.300s\n", c->reply.status, c->why);
    } else {
        sum.done_pieces += c->pieces;
        sum.done_tokens += c->used;
        if (counts(now)) {
            sum.done++;
            sum.prompt += c->prompt;
            sum.cached += c->cached > 0 ? c->cached : 0;
            add(&total, now - c->due);
            if (opt.whole) sum.pieces += c->pieces;
        }
    }
    c->asks = false;
    if (c->reply.closes) hang_up(c);
}

static int64_t number_after(const char *line, const char *key)
{
    const char *p = strstr(line, key);
    return p ? strtoll(p + strlen(key), NULL, 10) : -1;
}

static bool has_text(const char *line)
{
    static const char *const key[] = {"\"content\":\"", "\"reasoning_content\":\""};
    for (size_t i = 0; i < 2; i++) {
        const char *p = strstr(line, key[i]);
        if (p && p[strlen(key[i])] != '"') return true;
    }
    return false;
}

/* One line of a body, NUL behind it. */
static void take_line(void *ctx, const char *line)
{
    client *c = ctx;
    const double now = t_now;
    if (strstr(line, "\"error\":")) {
        c->failed = true;
        (void)snprintf(c->why, sizeof c->why, "%s", line);
        return;
    }
    if (strstr(line, "\"usage\":{")) {
        c->used = number_after(line, "\"completion_tokens\":");
        c->prompt = number_after(line, "\"prompt_tokens\":");
        c->cached = number_after(line, "\"cached_tokens\":");
        if (opt.whole) c->pieces = c->used;
    }
    if (opt.whole || !has_text(line)) return;
    if (counts(now)) {
        sum.pieces++;
        add(c->pieces ? &gap : &first, now - c->last);
    }
    c->pieces++;
    c->last = now;
    if (c->pieces == c->leave_at) c->gone = true;
}

static void receive(client *c)
{
    static char bytes[READ_BYTES];
    const ssize_t n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return;
    t_now = clock_s();
    if (n <= 0) {
        if (c->asks) {
            c->failed = c->reply.closes = true;
            (void)snprintf(c->why, sizeof c->why, "%s",
                           n < 0 ? strerror(errno) : "the connection was closed");
            finish(c, t_now);
        }
        hang_up(c);
        return;
    }
    if (!c->asks) return;
    reply_take(&c->reply, bytes, (size_t)n, take_line, c);
    if (c->reply.at == REPLY_WHOLE) {
        finish(c, t_now);
    } else if (c->gone) {
        sum.left++;
        hang_up(c);
    }
}

static client *free_client(void)
{
    for (int64_t i = 0; i < opt.clients; i++)
        if (!clients[i].asks) return &clients[i];
    return NULL;
}

/* The time to the next arrival, at one a second. */
static double spacing(int64_t k)
{
    return -log(1 - rng_unit((uint64_t)opt.seed, STREAM_ARRIVALS, (uint64_t)k));
}

static bool may_begin(double now)
{
    return opt.requests ? sum.begun < opt.requests : now < t_end;
}

/* Answers when the next one is to begin. */
static double begin_due(double now, double next)
{
    if (opt.rate == 0) {
        client *c;
        while (may_begin(now) && (c = free_client()) != NULL) begin(c, now);
        return now + 1;
    }
    while (may_begin(now) && next <= now) {
        client *c = free_client();
        if (c)
            begin(c, next);
        else
            sum.late++; /* more in flight than --clients */
        next += spacing(sum.begun + sum.late) / opt.rate;
    }
    return next;
}

/* A short question on a connection that is kept: what a client with a pool does. */
static bool ask_health(int fd)
{
    static const char ask[] = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    char bytes[1024];
    if (send(fd, ask, sizeof ask - 1, MSG_NOSIGNAL) != (ssize_t)sizeof ask - 1) return false;
    const ssize_t n = recv(fd, bytes, sizeof bytes, 0);
    return n > 12 && strncmp(bytes, "HTTP/1.1 200", 12) == 0;
}

static void keep_idle(bool dials)
{
    sum.idle_alive = 0;
    for (int64_t i = 0; i < opt.idle; i++) {
        if (dials) idle_fd[i] = dial();
        sum.idle_alive += ask_health(idle_fd[i]);
    }
}

static bool all_free(void)
{
    for (int64_t i = 0; i < opt.clients; i++)
        if (clients[i].asks) return false;
    return true;
}

static void run(void)
{
    struct epoll_event ev[256];
    double next = t_start, idle_at = t_start + IDLE_ASKS_S;
    for (double now = clock_s();; now = clock_s()) {
        next = begin_due(now, next);
        if (opt.requests ? sum.begun == opt.requests && all_free() : now >= t_end) break;
        if (opt.idle && now > idle_at) {
            keep_idle(false);
            idle_at += IDLE_ASKS_S;
        }
        const double wait = next - now < 0.5 ? next - now : 0.5;
        const int n = epoll_wait(poll_fd, ev, 256, wait > 0 ? (int)(wait * 1e3) : 0);
        if (n < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < n; i++) {
            client *c = &clients[ev[i].data.u32];
            if (c->fd >= 0 && (ev[i].events & EPOLLOUT)) push(c);
            if (c->fd >= 0 && (ev[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))) receive(c);
        }
    }
    if (opt.requests) t_end = clock_s();
}

static void report(void)
{
    struct rusage u;
    const double s = t_end - t_count;
    (void)getrusage(RUSAGE_SELF, &u);
    const double cpu = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    const double each = sum.done_pieces ? (double)sum.done_tokens / (double)sum.done_pieces : 1;
    samples *all[] = {&first, &gap, &total};
    static const char *const name[] = {"first", "gap", "total"};
    printf("{\"seconds\": %.2f, \"requests\": %lld, \"errors\": %lld, \"refused\": %lld, \"left\": "
           "%lld, \"late\": %lld, "
           "\"prompt_tokens\": %lld, \"cached_tokens\": %lld, \"tokens\": %.0f, "
           "\"tokens_per_second\": %.2f, "
           "\"requests_per_second\": %.2f, \"own_cpu\": %.3f, \"idle_alive\": %lld",
           s, (long long)sum.done, (long long)sum.errors, (long long)sum.refused,
           (long long)sum.left, (long long)sum.late, (long long)sum.prompt, (long long)sum.cached,
           (double)sum.pieces * each, (double)sum.pieces * each / s, (double)sum.done / s,
           cpu / (clock_s() - t_start), (long long)sum.idle_alive);
    for (int i = 0; i < 3; i++) {
        qsort(all[i]->v, all[i]->n, sizeof(double), by_value);
        printf(", \"%s_p50_ms\": %.3f, \"%s_p99_ms\": %.3f, \"%s_max_ms\": %.3f", name[i],
               part(all[i], 0.5), name[i], part(all[i], 0.99), name[i], part(all[i], 1));
    }
    printf("}\n");
}

static bool read_range(const char *s, range *out)
{
    char *end;
    out->lo = out->hi = strtoll(s, &end, 10);
    if (*end == ':') out->hi = strtoll(end + 1, &end, 10);
    return *end == '\0' && out->lo >= 1 && out->hi >= out->lo && out->hi <= 1 << 19;
}

static void read_flags(int argc, char **argv)
{
    const flag table[] = {
        {"--clients", NULL, FLAG_INT, &opt.clients, "N: at once; with --rate at most (8)", 1,
         MAX_CLIENTS, NULL},
        {"--rate", NULL, FLAG_NUM, &opt.rate,
         "R: so many requests begin a second, at random moments", 0, 1e6, NULL},
        {"--seconds", NULL, FLAG_NUM, &opt.seconds, "S: counted (10)", 0.1, 1e6, NULL},
        {"--warm", NULL, FLAG_NUM, &opt.warm, "S: before that (2)", 0, 1e6, NULL},
        {"--requests", NULL, FLAG_INT, &opt.requests,
         "N: and then the end, all counted, whatever the time", 1, 1e12, NULL},
        {"--words", NULL, FLAG_STR, &opt.words, "LO:HI: of a prompt (16:512)", 0, 0, NULL},
        {"--tokens", NULL, FLAG_STR, &opt.tokens, "LO:HI: of an answer (16:128)", 0, 0, NULL},
        {"--shared", NULL, FLAG_INT, &opt.shared, "N: words that all prompts begin with (0)", 0,
         1 << 19, NULL},
        {"--repeat", NULL, FLAG_INT, &opt.repeat, "K: different prompts; 0: all differ (0)", 0, 1e9,
         NULL},
        {"--leave", NULL, FLAG_INT, &opt.leave,
         "P: percent of requests that leave within their answer (0)", 0, 100, NULL},
        {"--idle", NULL, FLAG_INT, &opt.idle,
         "N: connections that are kept and ask for nothing (0)", 0, MAX_IDLE, NULL},
        {"--say", NULL, FLAG_STR, &opt.say, "TEXT: what prompts end with", 0, 0, NULL},
        {"--temp", NULL, FLAG_NUM, &opt.temp, "T: temperature (0.8)", 0, 2, NULL},
        {"--top-k", NULL, FLAG_INT, &opt.top_k, "K (40)", 0, 1e6, NULL},
        {"--seed", NULL, FLAG_INT, &opt.seed, "S (1)", 0, 1e15, NULL},
        {"--model", NULL, FLAG_STR, &opt.model, "NAME: as the server calls it", 0, 0, NULL},
        {"--whole", NULL, FLAG_BOOL, &opt.whole, "answers are not streamed", 0, 0, NULL},
        {"--fresh", NULL, FLAG_BOOL, &opt.fresh, "a connection for each request", 0, 0, NULL},
        {"--help", NULL, FLAG_BOOL, &opt.help, "this", 0, 0, NULL},
    };
    enum { FLAGS = sizeof table / sizeof *table };
    const char *rest[1] = {NULL};
    size_t n_rest = 0;
    cairn_diag dg = {0};
    const cairn_status st = flags_parse(table, FLAGS, argc - 1, argv + 1, rest, 1, &n_rest, &dg);
    const int64_t port = n_rest ? strtoll(rest[0], NULL, 10) : 0;
    if (opt.help) {
        buf b = {0};
        buf_init(&b, MEM_MISC);
        flags_help(table, FLAGS, &b);
        printf("usage: bench_serve PORT [flags]\n\n%s", b.ptr);
        exit(0);
    }
    if (!opt.model) opt.model = "";
    if (st != CAIRN_OK || port < 1 || port > 65535 || !read_range(opt.words, &opt.prompt) ||
        !read_range(opt.tokens, &opt.answer)) {
        (void)fprintf(stderr, "bench_serve: %s\n",
                      st != CAIRN_OK ? dg.message
                                     : "a port (1 to 65535) and ranges as 16:512 are expected");
        exit(2);
    }
    opt.to = (struct sockaddr_in){.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Files for all connections: the usual soft limit is 1,024. */
static void raise_files(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l)) return;
    l.rlim_cur = l.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &l);
}

int main(int argc, char **argv)
{
    read_flags(argc, argv);
    raise_files();
    clients = mem_calloc((size_t)opt.clients, sizeof *clients, MEM_MISC);
    idle_fd = mem_calloc((size_t)opt.idle + 1, sizeof *idle_fd, MEM_MISC);
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!clients || !idle_fd || poll_fd < 0) die("start");
    for (int64_t i = 0; i < opt.clients; i++) clients[i].fd = -1;
    keep_idle(true);
    t_start = clock_s();
    t_count = opt.requests ? t_start : t_start + opt.warm;
    t_end = opt.requests ? 1e300 : t_count + opt.seconds;
    run();
    keep_idle(false);
    report();
    return sum.errors > 0;
}
