/* The program: a table of commands. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const command commands[] = {
    {"run", "[MODEL] [-p PROMPT | -f FILE] [flags]",
     "Answer a prompt; without one, on a terminal, hold a conversation.", cmd_run},
    {"serve", "[MODEL...] [flags]", "Serve models over HTTP (OpenAI chat completions).", cmd_serve},
    {"info", "MODEL [--json] [--tensor NAME --out OUT.npy]", "Show what a model is made of.",
     cmd_info},
    {"tokenize", "MODEL (-f FILE | -p TEXT)", "Print the token ids of a text.", cmd_tokenize},
    {"detokenize", "MODEL -f IDS.json", "Print the text of token ids, exact bytes.",
     cmd_detokenize},
    {"render", "[MODEL] --messages FILE.json [flags]", "Print the prompt of a conversation.",
     cmd_render},
    {"logits", "MODEL --ids IDS.json --out OUT.npy [flags]", "Write teacher-forced logits.",
     cmd_logits},
    {"bench", "MODEL [flags]", "Measure prefill and decode speed beside the machine's limits.",
     cmd_bench},
    {"score", "MODEL -f TEXT [--json]", "Mean negative log-likelihood and perplexity of a text.",
     cmd_score},
    {"check-numerics", "MODEL [--ids IDS.json]",
     "Compare logits bit by bit across chunks, batches and threads.", cmd_check_numerics},
    {"pull", "NAME | ls [--json] | rm NAME",
     "Fetch a model and check it; list or remove what is there.", cmd_pull},
};

static void print_usage(FILE *to)
{
    fputs("usage: cairn COMMAND ...   (cairn COMMAND --help)\n\n", to);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        fprintf(to, "  %-15s %s\n", commands[i].name, commands[i].help);
}

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error from write, not the end */
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("cairn %s\n", cairn_version());
        return EXIT_OK;
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(&commands[i], argc - 2, argv + 2);
    fprintf(stderr, "cairn: command \"%s\" is not known; expected one of those in cairn --help\n",
            argv[1]);
    return EXIT_USAGE;
}
