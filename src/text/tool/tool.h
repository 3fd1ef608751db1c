/* How each family of models writes thoughts and calls: state tables that text/reply.c walks byte by
   byte.  A table says what is markup and what it leads to; it holds no code.  Adding a family is a
   table, its line in tool.c and its markers in reply_find.c. */
#ifndef TEXT_TOOL_H
#define TEXT_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tool_op {
    TOOL_ANSWER,  /* text of the answer, until an arm's literal */
    TOOL_THOUGHT, /* text of the thought, likewise */
    TOOL_SKIP,    /* white space, then an arm's literal; the arm "" takes everything else */
    TOOL_NAME,    /* the function's name, until an arm's literal */
    TOOL_ID,      /* the call's id, likewise */
    TOOL_KEY,     /* a parameter's name, likewise; needs a call that has begun */
    TOOL_DROP,    /* bytes of a header that say nothing, likewise */
    TOOL_VALUE,   /* a parameter's value, likewise */
    TOOL_NEST, /* elements within a parameter's value; its arms are what opens one (ARM_INSIDE) and
                     what closes one, or the value */
    TOOL_JSON, /* the arguments as a JSON object, passed on as they are */
    TOOL_OBJECT, /* the call as a JSON object with name, arguments and perhaps id */
    TOOL_GEMMA,  /* the arguments in Gemma's notation */
    TOOL_KWARGS  /* name=value, … up to ")", values as Python or JSON writes them */
} tool_op;

enum {                   /* of states */
       TOOL_TRIM = 1,    /* TEXT: white space at its beginning is markup */
       TOOL_END = 2,     /* JSON, GEMMA, KWARGS: the call ends with the arguments */
       TOOL_LINES = 4,   /* VALUE: one newline at each side is markup */
       TOOL_STRING = 8,  /* VALUE: a string whatever the schema says */
       TOOL_TYPED = 16,  /* VALUE: JSON whatever the schema says */
       TOOL_MORE = 32,   /* VALUE: goes on with a value that another state began */
       TOOL_KIMI = 64,   /* NAME: "functions.NAME:INDEX" is the id, NAME the name */
       TOOL_KEYED = 128, /* OBJECT: {"NAME": {arguments}} */
       TOOL_ESCAPE = 256 /* GEMMA: strings between <escape> */
};

enum {              /* of arms */
       ARM_AT = 1,  /* only where nothing but white space came before in this text */
       ARM_SP = 2,  /* a special token of the family's vocabularies */
       ARM_END = 4, /* ends the call, which begins here if it has not */
       ARM_BEGIN = 8,
       ARM_KEEP = 16,  /* the literal is looked at, not taken */
       ARM_OK = 32,    /* what came so far is markup even if the next call turns out to be none */
       ARM_INSIDE = 64 /* VALUE, NEST: the value goes on in the next state */
};

enum { TOOL_MAX_ARMS = 10, TOOL_MAX_LITERAL = 63, TOOL_MAX_TAILS = 8 };

typedef struct tool_arm {
    const char *lit;
    uint8_t to;
    uint8_t flags;
} tool_arm;

typedef struct tool_state {
    tool_op op;
    uint16_t flags;
    uint8_t next;                    /* JSON, OBJECT, GEMMA, KWARGS */
    tool_arm arm[TOOL_MAX_ARMS + 1]; /* a NULL literal ends them */
} tool_state;

typedef struct tool_tail {
    const char *lit; /* the prompt, white space at its end left out, ends in this: start there */
    uint8_t state;
} tool_tail;

typedef enum tool_ids { TOOL_IDS_PLAIN, TOOL_IDS_NINE } tool_ids; /* NINE: nine letters or digits */

typedef struct tool_family {
    const char *name;
    const tool_state *state;
    uint8_t n_states;
    uint8_t start;  /* where no tail fits */
    uint8_t answer; /* where text goes on after a broken call; an ANSWER */
    bool special;   /* some of the literals are special tokens */
    tool_ids ids;
    tool_tail tail[TOOL_MAX_TAILS + 1];
    const char *thought_end; /* what closes a thought as the template writes it; NULL: none */
} tool_family;

/* NULL after the last. */
const tool_family *tool_family_at(size_t i);
const tool_family *tool_family_find(const char *name);

#endif
