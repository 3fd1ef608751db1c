/* Child processes.  One call starts, listens to and reaps one child, which is killed should we be; nothing
   of ours but the three standard descriptors reaches it, as every descriptor here is close-on-exec. */
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/diag.h"

enum {
    TICK_MS = 200,
    ENV_MAX = 4096,
    LAST_READS = 8 /* of SPAWN_SAID_MAX / 2 bytes: what a pipe holds */
};

/* Our environment with TMPDIR exchanged; NULL when there is no memory.  `own` holds the new text. */
static char **make_env(const char *tmpdir, buf *own)
{
    size_t n = 0, k = 0;
    while (n < ENV_MAX && environ[n]) n++;
    char **env = mem_calloc(n + 2, sizeof *env, MEM_MISC);
    buf_printf(own, "TMPDIR=%s", tmpdir);
    if (!env || buf_status(own) != CAIRN_OK) {
        mem_free(env);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "TMPDIR=", 7) != 0) env[k++] = environ[i];
    env[k] = own->ptr;
    return env;
}

static pid_t reap(pid_t pid, int flags, int *status)
{
    pid_t got;
    do got = waitpid(pid, status, flags);
    while (got < 0 && errno == EINTR);
    return got;
}

/* In the child, where only calls that are safe in a signal handler are allowed.  It dies with us: what
   it fetches is of use to nobody then.  Descriptors are moved beyond the standard ones first, which
   ours may be where a caller closed those. */
static _Noreturn void become(const char *const argv[], char *const *env, int out, int report,
                             pid_t parent)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    out = fcntl(out, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    report = fcntl(report, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    null = null < 0 ? null : fcntl(null, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent && null >= 0 && out >= 0 &&
        signal(SIGPIPE, SIG_DFL) != SIG_ERR /* we ignore it; a child should not inherit that */
        && dup2(null, STDIN_FILENO) == STDIN_FILENO && dup2(out, STDOUT_FILENO) == STDOUT_FILENO &&
        dup2(out, STDERR_FILENO) == STDERR_FILENO)
        /* the vector is const in all but its type, as C says of exec */
        (void)execvpe(argv[0], (char *const *)(uintptr_t)argv, env);
    const int e = errno;
    (void)!write(report, &e, sizeof e);
    _exit(127);
}

/* The thread that calls this must wait for the child: its end would be the child's. */
static int start(const char *const argv[], char *const *env, int out, pid_t *pid)
{
    int report[2], e = 0;
    const pid_t self = getpid();
    if (pipe2(report, O_CLOEXEC) != 0) return errno;
    const pid_t child = fork();
    if (child == 0) become(argv, env, out, report[1], self);
    if (child < 0) e = errno;
    (void)close(report[1]);
    if (child > 0) {
        ssize_t n;
        do n = read(report[0], &e, sizeof e); /* ends when the program has been started */
        while (n < 0 && errno == EINTR);
        if (n == (ssize_t)sizeof e)
            (void)reap(child, 0, &(int){0});
        else
            e = 0;
    }
    (void)close(report[0]);
    *pid = child;
    return e;
}

static void keep_tail(buf *said, const char *p, size_t n)
{
    if (said->len + n > SPAWN_SAID_MAX) {
        const size_t keep = SPAWN_SAID_MAX - n; /* n is at most half of it */
        const size_t drop = said->len > keep ? said->len - keep : 0;
        memmove(said->ptr, said->ptr + drop, said->len - drop);
        buf_cut(said, said->len - drop);
    }
    buf_put(said, p, n);
}

/* What is there to be read; false: nothing, and nothing will be. */
static bool take(int fd, buf *said)
{
    char chunk[SPAWN_SAID_MAX / 2];
    const ssize_t n = read(fd, chunk, sizeof chunk);

    if (n > 0) keep_tail(said, chunk, (size_t)n);
    return n > 0 || (n < 0 && errno == EINTR);
}

/* Listens until the child closes its output or is gone (something it left behind may hold it, and may go on
   writing: what a pipe holds is read after the child's end, no more). */
static int listen_to(pid_t pid, int fd, const spawn_opts *o, buf *said)
{
    int status = 0;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const int ready = poll(&p, 1, TICK_MS);
        if (o && o->tick) o->tick(o->ctx);
        if (ready < 0 && errno != EINTR) break;
        if (ready <= 0) {
            if (reap(pid, WNOHANG, &status) == 0) continue;
            int left = LAST_READS; /* its last words may have come since */
            while (left-- > 0 && poll(&p, 1, 0) > 0 && take(fd, said)) continue;
            return status;
        }
        if (!take(fd, said)) break;
    }
    (void)reap(pid, 0, &status);
    return status;
}

cairn_status spawn_run(const char *const argv[], const spawn_opts *o, int *exit_code, buf *said,
                       cairn_diag *dg)
{
    char reason[128];
    cairn_status st = CAIRN_OK;
    int fd[2] = {-1, -1};
    char **env = NULL;
    pid_t pid = -1;
    buf tmpdir;
    buf_init(&tmpdir, MEM_MISC);
    buf_clear(said);
    if (o && o->tmpdir && !(env = make_env(o->tmpdir, &tmpdir))) {
        st = diag_set(dg, CAIRN_E_NOMEM, "%s: no memory to start it", argv[0]);
        goto out;
    }
    int e = pipe2(fd, O_CLOEXEC) == 0 ? 0 : errno;
    if (!e) e = start(argv, env ? env : environ, fd[1], &pid);
    if (e) {
        st = diag_set(dg, e == ENOENT ? CAIRN_E_NOTFOUND : CAIRN_E_IO, "%s: cannot start it: %s",
                      argv[0], strerror_r(e, reason, sizeof reason));
        goto out;
    }
    (void)close(fd[1]);
    fd[1] = -1;
    const int status = listen_to(pid, fd[0], o, said);
    *exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    st = buf_status(said);
out:
    if (fd[0] >= 0) (void)close(fd[0]);
    if (fd[1] >= 0) (void)close(fd[1]);
    mem_free(env);
    buf_deinit(&tmpdir);
    return st;
}
