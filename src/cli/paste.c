/* The line editor's input.  A terminal that is asked to writes ESC[200~ before what the user pastes and
   ESC[201~ behind it ("bracketed paste"); in between, each control character is handed over behind the
   editor's own quote, Ctrl-V, so that it becomes text: a line end ends nothing, a tab completes nothing.

   Invariant: bytes at…end of `in` came and were not handed over; a marker is never handed over. */
#include "cli/paste.h"

#include <editline/readline.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli/answer.h"
#include "cli/cli.h"

#define PASTE_ON    "\033[?2004h"
#define PASTE_OFF   "\033[?2004l"
#define PASTE_FIRST "\033[200~"
#define PASTE_LAST  "\033[201~"

enum {
    QUOTE = 'V' & 0x1f, /* Ctrl-V, in both of the editor's modes */
    MARKER_MS = 20      /* for the rest of a marker; a key of its own is no longer in coming */
};

static struct {
    char byte[4096];
    size_t at, end;
    int quoted; /* handed over behind QUOTE; 0: none */
    bool pasting, interrupted;
} in;

/* More bytes behind those that are here; false: none came within wait_ms (-1: ever). */
static bool more(int wait_ms)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    memmove(in.byte, in.byte + in.at, in.end - in.at);
    in.end -= in.at;
    in.at = 0;
    if (wait_ms >= 0 && poll(&p, 1, wait_ms) == 0) return false; /* a signal: read sees to it */
    for (;;) {
        const ssize_t n = read(STDIN_FILENO, in.byte + in.end, sizeof in.byte - in.end);
        if (n > 0) in.end += (size_t)n;
        if (n >= 0 || errno != EINTR) return n > 0;
        in.interrupted = answer_interrupted();
        if (in.interrupted) return false;
        /* The window's size, a way back, or a Ctrl-Z that nobody above us could obey: before that one
           the editor gave the terminal back. */
        rl_prep_terminal(1);
    }
}

static bool next_is(const char *marker)
{
    const size_t n = strlen(marker);
    while (in.end - in.at < n && memcmp(in.byte + in.at, marker, in.end - in.at) == 0)
        if (!more(MARKER_MS)) return false;
    if (in.end - in.at < n || memcmp(in.byte + in.at, marker, n) != 0) return false;
    in.at += n;
    return true;
}

/* The next character; -1: no more. */
static int next_char(void)
{
    uint32_t c;
    while (utf8_tail((cairn_str){in.byte + in.at, in.end - in.at}) == in.end - in.at)
        if (!more(-1)) return -1;
    const int n = utf8_decode(in.byte + in.at, in.end - in.at, &c);
    in.at += (size_t)(n < 0 ? -n : n);
    return (int)c;
}

static int pasted(int c)
{
    if (c == '\r') {
        c = '\n';
        if (in.at == in.end) (void)more(MARKER_MS); /* a pair may have been cut */
        if (in.at < in.end && in.byte[in.at] == '\n') in.at++;
    }
    if (c < 0 || (c >= ' ' && c < 0x7f) || c >= 0xa0) return c;
    if (c == 0) return ' '; /* the editor's lines end at one */
    in.quoted = c;
    return QUOTE;
}

static int get_char(FILE *unused)
{
    (void)unused;
    if (in.quoted) {
        const int c = in.quoted;
        in.quoted = 0;
        return c;
    }
    for (;;) {
        if (in.at == in.end && !more(-1)) {
            in.pasting = false; /* Ctrl-C gives a paste up whose end was lost */
            return -1;
        }
        if (!next_is(in.pasting ? PASTE_LAST : PASTE_FIRST)) break;
        in.pasting = !in.pasting;
    }
    const int c = next_char();
    return in.pasting ? pasted(c) : c;
}

/* Of the terminal; a dumb one would print the words. */
static void ask(const char *words)
{
    if (rl_terminal_name && strcmp(rl_terminal_name, "dumb") != 0)
        (void)cli_write_out(words, strlen(words), NULL);
}

void paste_begin(void)
{
    rl_getc_function = get_char;
    rl_inhibit_completion = 1; /* what is typed is prose: no file names */
    (void)rl_initialize();
    ask(PASTE_ON);
}

void paste_end(void)
{
    ask(PASTE_OFF);
}

bool paste_interrupted(void)
{
    const bool was = in.interrupted;
    in.interrupted = false;
    return was;
}

void paste_library(buf *out)
{
    buf_printf(out, "libedit (%s)", rl_library_version);
}
