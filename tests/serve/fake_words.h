/* The words in a prompt that direct the test double of the engine (the last of each kind counts):
     @reply=TEXT     to the end of the line; else a greeting
     @n=N            the answer repeated to N tokens        @pace=MS     between tokens
     @prefill=MS     before the first                       @fail=N      an engine error after N tokens
     @late           that error is a deadline's
     @cached=N       reported as n_cached                   @echo        the answer tells the sampling
     @until=PATH     not before that file is there: nothing is said
     @render=PATH    the same of the prompt           @template-error the template refuses
     @says="JSON"    the answer, escaped      @ends="JSON" the prompt's end instead of "assistant: "
     @step=N         bytes of text to a token @cut=N      so many in the first token, the rest in one
     @prompt         the answer is the prompt @eos        it ends at once
     @steps          the template takes more steps than any limit that a render is given
     @progress=N     the prefill is told in N steps, the last one when its end is due; else only that */
#ifndef TESTS_SERVE_FAKE_WORDS_H
#define TESTS_SERVE_FAKE_WORDS_H

#include "base/buf.h"

enum {
    WORD_PATH_BYTES = 400,
    WORD_GATE_MS = 2 /* between two looks for a file */
};

/* Where the last `word` ends in s; NULL if it is not there. */
const char *word_after(const char *s, const char *word);
/* The number behind it. */
size_t word_number(const char *s, const char *word, size_t otherwise);
/* The path behind it, up to a blank; "" if there is none. */
void word_path(const char *s, const char *word, char path[WORD_PATH_BYTES]);
/* The JSON string behind it; false if there is none. */
bool word_quoted(const char *s, const char *word, buf *out);
/* Whether there is a file of that path, or nothing to wait for: "". */
bool word_is_there(const char *path);

#endif
