/* Child processes: arguments as they are, exit statuses, last words, no descriptors of ours. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/spawn.h"

static int run(const char *const argv[], const spawn_opts *o, buf *said)
{
    int code = -1;
    cairn_diag dg = {0};
    assert_ok(spawn_run(argv, o, &code, said, &dg));
    return code;
}

static void arguments_and_output(void **state)
{
    (void)state;
    buf said;
    buf_init(&said, MEM_MISC);
    const char *const echo[] = {"printf", "%s|", "a b", "$HOME;`x`", "", NULL};
    assert_int_equal(run(echo, NULL, &said), 0);
    assert_str(buf_view(&said), "a b|$HOME;`x`||");
    const char *const both[] = {"sh", "-c", "echo out; echo err >&2; cat; exit 7", NULL};
    assert_int_equal(run(both, NULL, &said), 7); /* cat ends at once: nothing on standard input */
    assert_str(buf_view(&said), "out\nerr\n");
    buf_deinit(&said);
}

static void signals_and_missing_programs(void **state)
{
    (void)state;
    int code = -1;
    cairn_diag dg = {0};
    buf said;
    buf_init(&said, MEM_MISC);
    const char *const killed[] = {"sh", "-c", "kill -9 $$", NULL};
    assert_int_equal(run(killed, NULL, &said), 128 + 9);
    const char *const none[] = {"no-such-program-here", NULL};
    assert_int_equal(spawn_run(none, NULL, &code, &said, &dg), CAIRN_E_NOTFOUND);
    assert_says(&dg, "no-such-program-here");
    assert_int_equal(code, -1);
    buf_deinit(&said);
}

static void only_the_last_words_are_kept(void **state)
{
    (void)state;
    buf said;
    buf_init(&said, MEM_MISC);
    const char *const chatty[] = {"sh", "-c", "seq 1 200000; printf end", NULL};
    assert_int_equal(run(chatty, NULL, &said), 0);
    assert_true(said.len <= SPAWN_SAID_MAX && said.len > SPAWN_SAID_MAX / 4);
    assert_true(str_ends(buf_view(&said), STR_LIT("\n200000\nend")));
    buf_deinit(&said);
}

typedef struct ticks {
    int n;
    int tells; /* a pipe */
} ticks;

static void count(void *ctx)
{
    ticks *t = ctx;
    if (++t->n == 3) (void)!write(t->tells, "\n", 1);
}

/* The child ends when there were three ticks. */
static void folder_ticks_and_descriptors(void **state)
{
    (void)state;
    int pipe_fd[2];
    assert_int_equal(pipe(pipe_fd), 0);
    ticks seen = {0, pipe_fd[1]};
    const spawn_opts o = {.tmpdir = "/some where", .tick = count, .ctx = &seen};
    buf said;
    buf_init(&said, MEM_MISC);
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char script[200];
    (void)snprintf(script, sizeof script,
                   "env | grep -c ^TMPDIR=; echo $TMPDIR; [ -e /proc/self/fd/%d ] && echo leak; "
                   "read line </proc/%d/fd/%d",
                   fd, (int)getpid(), pipe_fd[0]);
    const char *const argv[] = {"sh", "-c", script, NULL};
    assert_int_equal(run(argv, &o, &said), 0);
    assert_str(buf_view(&said), "1\n/some where\n");
    assert_true(seen.n >= 3);
    (void)close(fd);
    (void)close(pipe_fd[0]);
    (void)close(pipe_fd[1]);
    buf_deinit(&said);
}

static void a_grandchild_does_not_hold_us(void **state)
{
    (void)state;
    buf said;
    buf_init(&said, MEM_MISC);
    const char *const argv[] = {"sh", "-c", "sleep 5 & echo started", NULL};
    const uint64_t before = mem_used_all();
    assert_int_equal(run(argv, NULL, &said), 0);
    assert_str(buf_view(&said), "started\n");
    buf_deinit(&said);
    assert_true(mem_used_all() <= before);
}

/* A killed parent's child, which becomes ours to reap, is killed too, before it ends by itself. */
static void a_child_dies_with_us(void **state)
{
    int fd[2], status = 0;
    pid_t child = 0;
    char word[16] = "";
    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(pipe(fd), 0);
    const pid_t middle = fork();
    if (middle == 0) {
        char script[64];
        buf said;
        int code;
        buf_init(&said, MEM_MISC);
        (void)snprintf(script, sizeof script, "echo $$ >/proc/%d/fd/%d; exec sleep 60",
                       (int)getpid(), fd[1]);
        const char *const argv[] = {"sh", "-c", script, NULL};
        _exit(spawn_run(argv, NULL, &code, &said, NULL) == CAIRN_OK ? 0 : 1);
    }
    assert_true(middle > 0);
    assert_true(read(fd[0], word, sizeof word - 1) > 0);
    child = (pid_t)atoi(word);
    assert_true(child > 1);
    assert_int_equal(kill(middle, SIGKILL), 0);
    assert_int_equal(waitpid(middle, &status, 0), middle);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    (void)close(fd[0]);
    (void)close(fd[1]);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_and_output),
        cmocka_unit_test(signals_and_missing_programs),
        cmocka_unit_test(only_the_last_words_are_kept),
        cmocka_unit_test(folder_ticks_and_descriptors),
        cmocka_unit_test(a_grandchild_does_not_hold_us),
        cmocka_unit_test(a_child_dies_with_us),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
