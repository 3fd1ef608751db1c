/* Fields of a body, or of a part of one, that have a form and which an API names: each API's reader holds what it
   got to its own table. */
#ifndef SERVE_BODY_FIELDS_H
#define SERVE_BODY_FIELDS_H

#include <stdint.h>

#include "base/json.h"
#include "base/map.h"
#include "cairn/status.h"
#include "serve/body_path.h"
#include "serve/openai_read.h"

typedef enum field_form {
    FIELD_TEXT,
    FIELD_TRUTH,
    FIELD_OBJECT,
    FIELD_LIST,
    FIELD_WHOLE, /* an integer from lo to hi */
    FIELD_WORD,  /* one of `words` */
    FIELD_TEXTS, /* an object of few short texts, as OpenAI's metadata */
} field_form;

typedef struct body_field {
    const char *in, *name; /* the object that holds it, NULL: the part itself; its name */
    field_form form;
    const char *words; /* that it may be, with a space behind each */
    const char *what;  /* the same, as errors name them */
    int64_t lo, hi;
} body_field;

#define BODY_FIELD(in, name, form)                                                                 \
    {                                                                                              \
        in, name, form, NULL, NULL, 0, 0                                                           \
    }
#define BODY_WORD(in, name, ...)                                                                   \
    {                                                                                              \
        in, name, FIELD_WORD, __VA_ARGS__, 0, 0                                                    \
    } /* words, what */
#define BODY_WHOLE(in, name, low, high)                                                            \
    {                                                                                              \
        in, name, FIELD_WHOLE, NULL, NULL, low, high                                               \
    }

/* OpenAI's words, in both of its APIs, and how errors name them. */
#define CHAT_TIERS                                                                                 \
    "auto default flex scale priority fast ultrafast ",                                            \
        "auto, default, flex, scale, priority, fast or ultrafast"
#define CHAT_EFFORTS                                                                               \
    "none minimal low medium high xhigh max ", "none, minimal, low, medium, high, xhigh or max"

/* E_ARG with the path of the first that is wrong; null and absent ones are right. */
cairn_status body_fields_check(json_val part, body_path at, const body_field *list, size_t n,
                               chat_fault *f);
#define BODY_FIELDS_CHECK(part, at, list, f)                                                       \
    body_fields_check(part, at, list, sizeof(list) / sizeof((list)[0]), f)
bool body_word(const char *words, cairn_str word); /* whether it is one of them */
/* A tool's `name` as OpenAI's and Anthropic's APIs have it: 1 to `most` letters, digits, _ and -. */
cairn_status body_name_form(json_val name, body_path at, size_t most, chat_fault *f);
/* The same, and none of those `seen`, among which it then is. */
cairn_status body_name_check(json_val name, body_path at, size_t most, map *seen, chat_fault *f);

#endif
