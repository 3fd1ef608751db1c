/* Child processes through posix_spawn.  One call starts, listens to and reaps one child; nothing of
   ours but the three standard descriptors reaches it, as every descriptor here is close-on-exec. */
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/diag.h"

enum { TICK_MS = 200, ENV_MAX = 4096 };

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

static int start(const char *const argv[], char *const *env, int out, pid_t *pid)
{
    posix_spawn_file_actions_t act;
    posix_spawnattr_t attr;
    sigset_t dfl;
    int e = posix_spawn_file_actions_init(&act);
    if (e) return e;
    e = posix_spawnattr_init(&attr);
    if (e) {
        (void)posix_spawn_file_actions_destroy(&act);
        return e;
    }
    (void)sigemptyset(&dfl);
    (void)sigaddset(&dfl, SIGPIPE); /* we ignore it; a child should not inherit that */
    e = posix_spawn_file_actions_addopen(&act, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!e) e = posix_spawn_file_actions_adddup2(&act, out, STDOUT_FILENO);
    if (!e) e = posix_spawn_file_actions_adddup2(&act, out, STDERR_FILENO);
    if (!e) e = posix_spawnattr_setsigdefault(&attr, &dfl);
    if (!e) e = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
    /* the vector is const in all but its type, as C says of exec */
    if (!e) e = posix_spawnp(pid, argv[0], &act, &attr, (char *const *)(uintptr_t)argv, env);
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&act);
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

static pid_t reap(pid_t pid, int flags, int *status)
{
    pid_t got;
    do got = waitpid(pid, status, flags);
    while (got < 0 && errno == EINTR);
    return got;
}

/* Listens until the child closes its output or is gone (something it left behind may hold it). */
static int listen_to(pid_t pid, int fd, const spawn_opts *o, buf *said)
{
    char chunk[SPAWN_SAID_MAX / 2];
    int status = 0;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const int ready = poll(&p, 1, TICK_MS);
        if (o && o->tick) o->tick(o->ctx);
        if (ready < 0 && errno != EINTR) break;
        if (ready <= 0) {
            if (reap(pid, WNOHANG, &status) != 0) return status;
            continue;
        }
        const ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        keep_tail(said, chunk, (size_t)n);
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
    pid_t pid;
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
