/* Speed of reading replies: MiB a second of processor time, fed four bytes at a time as tokens come, for
   plain text, calls, and texts that are made to be read again and again.
     build/bench/bench_reply */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "text/reply.h"

enum { SIZE = 4 << 20, PIECE = 4 };

static const struct {
    const char *what, *family, *before, *again;
} cases[] = {
    {"prose", "hermes", "", "The quick brown fox, having read <b>this</b>, jumps.\n"},
    {"thought", "hermes", "<think>", "The quick brown fox, having read this, jumps.\n"},
    {"JSON arguments", "hermes", "<tool_call>{\"name\":\"f\",\"arguments\":{\"s\":\"",
     "int main(void) { return 0; }\\n"},
    {"parameters", "qwen3-coder", "<tool_call><function=f><parameter=s>",
     "int main(void) { return \"0\"; }\n"},
    {"Python strings", "llama3", "[f(s='", "int main(void) { return 0; }\\n"},
    {"many calls", "hermes", "",
     "<tool_call>{\"name\":\"f\",\"arguments\":{\"s\":1}}</tool_call>\n"},
    {"markers", "hermes", "", "<tool_call>"},
    {"half calls", "hermes", "", "<tool_call>{\"name\":\"f\""},
    {"names", "hermes", "", "<function=aaaaaaaaaaaaaaaa"},
    {"late arguments", "hermes", "", "<tool_call>{\"arguments\":{\"a\":["},
    {"white space", "hermes", "", " \n  \t "},
    {"in white space", "mistral", "", "[TOOL_CALLS]                                            "},
    {"sentinels", "gemma4", "", "<|tool_call>call:f{<|\"|>"},
    {"headers", "harmony", "<|channel|>final<|message|>",
     "<|start|>assistant<|channel|>commentary to=functions."},
};

static void ignore(void *ctx, const cairn_reply_event *ev)
{
    *(size_t *)ctx += ev->text.len;
}

static double cpu_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double measure(size_t i, const char *text)
{
    static const char tools[] =
        "[{\"name\":\"f\",\"parameters\":{\"properties\":{\"s\":{\"type\":\"string\"}}}}]";
    const cairn_reply_opts o = {
        .struct_size = sizeof o, .family = cases[i].family, .tools = str_of(tools)};
    size_t n = 0;
    reply *r = NULL;
    if (reply_new(&o, ignore, &n, &r, NULL) != CAIRN_OK) exit(1);
    const double from = cpu_s();
    for (size_t at = 0; at < SIZE; at += PIECE)
        if (reply_feed(r, (cairn_str){text + at, PIECE}, false) != CAIRN_OK) exit(1);
    if (reply_finish(r) != CAIRN_OK) exit(1);
    const double took = cpu_s() - from;
    reply_free(r);
    return SIZE / took / (1 << 20);
}

int main(void)
{
    char *text = malloc(SIZE);
    if (!text) return 1;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t lead = strlen(cases[i].before), n = strlen(cases[i].again);
        memcpy(text, cases[i].before, lead);
        for (size_t at = lead; at < SIZE; at++) text[at] = cases[i].again[(at - lead) % n];
        printf("%-16s %8.1f MiB/s\n", cases[i].what, measure(i, text));
    }
    free(text);
    return 0;
}
