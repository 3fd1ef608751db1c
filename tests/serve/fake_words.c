/* Finds words and what follows them. */
#include "serve/fake_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"

const char *word_after(const char *s, const char *word)
{
    const char *found = NULL;

    for (const char *p = strstr(s, word); p; p = strstr(p + 1, word)) found = p + strlen(word);
    return found;
}

size_t word_number(const char *s, const char *word, size_t otherwise)
{
    const char *p = word_after(s, word);

    return p ? strtoul(p, NULL, 10) : otherwise;
}

void word_path(const char *s, const char *word, char path[WORD_PATH_BYTES])
{
    const char *p = word_after(s, word);

    (void)snprintf(path, WORD_PATH_BYTES, "%.*s", p ? (int)strcspn(p, " \n") : 0, p ? p : "");
}

bool word_is_there(const char *path)
{
    return !*path || access(path, F_OK) == 0;
}

bool word_quoted(const char *s, const char *word, buf *out)
{
    const char *p = word_after(s, word);
    json_doc *doc = NULL;

    if (!p || json_parse((cairn_str){p, strcspn(p, "\n")}, &doc, NULL) != CAIRN_OK) return false;
    buf_str(out, json_str(json_root(doc)));
    json_free(doc);
    return true;
}
