/* Servers that start at once on one path: the one that has it is the one that is reached. */
#include "test.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "serve/local_socket.h"
#include "tmp.h"

static const char *rival_path; /* NULL: nobody else starts */
static local_socket rival;
static cairn_status rival_st;

/* In place of the C library's: another server starts between our bind and our listen. */
int listen(int fd, int backlog)
{
    const char *path = rival_path;

    rival_path = NULL;
    if (path) rival_st = local_socket_open(&rival, path, NULL);
    return (int)syscall(SYS_listen, fd, backlog);
}

/* Whether `path` leads to it. */
static bool is_reached(const local_socket *l, const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int got = -1;

    (void)snprintf(sa.sun_path, sizeof sa.sun_path, "%s", path);
    if (fd < 0) return false;
    if (connect(fd, (const struct sockaddr *)&sa, sizeof sa) == 0)
        got = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    close(fd);
    if (got >= 0) close(got);
    return got >= 0;
}

static void starting_together(void **state)
{
    cairn_diag dg = {0};
    local_socket l;
    tmp_dir dir;

    (void)state;
    assert_true(tmp_make(&dir));
    const char *path = tmp_path(&dir, "s");
    local_socket_init(&l);
    local_socket_init(&rival);
    rival_path = path;
    const cairn_status st = local_socket_open(&l, path, &dg);
    assert_true((st == CAIRN_OK) != (rival_st == CAIRN_OK));
    assert_int_equal(st == CAIRN_OK ? rival_st : st, CAIRN_E_BUSY);
    assert_true(is_reached(st == CAIRN_OK ? &l : &rival, path));
    local_socket_close(&l);
    local_socket_close(&rival);
    assert_int_equal(rmdir(dir.path), 0); /* nothing is left in it */
}

static void a_dead_one_is_replaced(void **state)
{
    local_socket l, dead;
    struct stat was, is;
    tmp_dir dir;

    (void)state;
    assert_true(tmp_make(&dir));
    const char *path = tmp_path(&dir, "s");
    local_socket_init(&l);
    local_socket_init(&dead);
    assert_ok(local_socket_open(&dead, path, NULL));
    assert_int_equal(local_socket_open(&l, path, NULL), CAIRN_E_BUSY);
    assert_true(is_reached(&dead, path));
    close(dead.fd);
    dead.fd = -1;
    assert_int_equal(lstat(path, &was), 0);
    assert_ok(local_socket_open(&l, path, NULL));
    assert_int_equal(lstat(path, &is), 0);
    assert_true(is_reached(&l, path));
    assert_int_equal(is.st_mode & 07777, 0600);
    assert_int_equal(is.st_nlink, 1);
    local_socket_close(&dead);
    local_socket_close(&l);
    assert_int_equal(rmdir(dir.path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starting_together),
        cmocka_unit_test(a_dead_one_is_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
