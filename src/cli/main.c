/* The program: a table of commands. */
#include <gnu/libc-version.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/paste.h"
#include "hub/hub_http.h"
#include "hub/hub_zip.h"
#include "serve/tls.h"
#include "text/tok.h"
#include "text/uchar.h"

static const command commands[] = {
    {"run", "[MODEL] [-p PROMPT | -f FILE] [flags]",
     "Answer a prompt; without one, on a terminal, hold a conversation.", cmd_run},
    {"serve", "[MODEL...] [flags]", "Serve models over HTTP, as OpenAI and others do.", cmd_serve},
    {"info", "MODEL [--json] [--tensor NAME --out OUT.npy]", "Show what a model is made of.",
     cmd_info},
    {"fit", "MODEL [--memory BYTES] [--json] [flags]",
     "Say what a model takes by context and parallel requests, and how fast it would decode.",
     cmd_fit},
    {"tokenize", "MODEL (-f FILE | -p TEXT)", "Print the token ids of a text.", cmd_tokenize},
    {"detokenize", "MODEL -f IDS.json", "Print the text of token ids, exact bytes.",
     cmd_detokenize},
    {"render", "[MODEL] --messages FILE.json [flags]", "Print the prompt of a conversation.",
     cmd_render},
    {"doctor", "MODEL [--json]", "Say what is wrong or old in a model's text files.", cmd_doctor},
    {"logits", "MODEL --ids IDS.json --out OUT.npy [flags]", "Write teacher-forced logits.",
     cmd_logits},
    {"bench", "MODEL [flags]", "Measure prefill and decode speed beside the machine's limits.",
     cmd_bench},
    {"score", "MODEL -f TEXT [--json]", "Mean negative log-likelihood and perplexity of a text.",
     cmd_score},
    {"embed", "MODEL -f FILE... [flags]", "Print the embedding of each file, a JSON array a line.",
     cmd_embed},
    {"check-numerics", "MODEL [--ids IDS.json]",
     "Compare logits bit by bit across chunks, batches and threads.", cmd_check_numerics},
    {"pull", "NAME | ls [--json] | rm NAME | gc [--yes] [--force]",
     "Fetch a model (smollm2, gemma3-270m, qwen2.5-coder-0.5b or -1.5b, or ORG/NAME of a "
     "repository) and "
     "check it; list or remove what is there, or what no name leads to.",
     cmd_pull},
};

static void put_usage(buf *b)
{
    buf_puts(b, "usage: cairn COMMAND ...   (cairn COMMAND --help)\n\n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        buf_printf(b, "  %-15s %s\n", commands[i].name, commands[i].help);
}

/* The line that scripts read, and one for each library: what a report of a fault has to say. */
static void put_version(buf *b)
{
    static void (*const libraries[])(buf * out) = {
        json_library,     hash_library,    regex_library, uchar_library,
        hub_http_library, hub_zip_library, tls_library,   paste_library,
    };
    buf_printf(b, "cairn %s\n", cairn_version());
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        libraries[i](b);
        buf_byte(b, '\n');
    }
    buf_printf(b, "glibc %s\n", gnu_get_libc_version());
}

static int print(buf *b)
{
    cairn_diag dg = {0};
    return cli_print(b, &dg) == CAIRN_OK ? EXIT_OK : cli_failed(&dg);
}

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error from write, not the end, */
    (void)signal(SIGXFSZ, SIG_IGN); /* and so is a file that may not grow */
    buf b;
    buf_init(&b, MEM_MISC);
    if (argc < 2) {
        put_usage(&b);
        (void)fputs(b.ptr ? b.ptr : "usage: cairn COMMAND ...\n", stderr);
        buf_deinit(&b);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        put_usage(&b);
        return print(&b);
    }
    if (strcmp(argv[1], "--version") == 0) {
        put_version(&b);
        return print(&b);
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(&commands[i], argc - 2, argv + 2);
    (void)fprintf(stderr,
                  "cairn: command \"%s\" is not known; expected one of those in cairn --help\n",
                  argv[1]);
    return EXIT_USAGE;
}
