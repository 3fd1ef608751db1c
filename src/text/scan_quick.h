/* The quick half of the rules of scan.c: each knows ASCII alone and answers where the match at a place in a
   block ends, or that a character beyond ASCII, or beyond the block, may be part of it.  For scan.c, whose
   rules in full have the same names. */
#ifndef TEXT_SCAN_QUICK_H
#define TEXT_SCAN_QUICK_H

#include "text/ascii.h"

/* 's 't 're 've 'm 'll 'd after the apostrophe at `at`; `fold`: any case, and U+017F, the long s
   that folds to s.  `at` if none. */
static size_t contraction(cairn_str s, size_t at, bool fold)
{
    static const char two[3][2] = {{'r', 'e'}, {'v', 'e'}, {'l', 'l'}};
    const char *p = s.ptr + at;
    size_t n = s.len - at;

    if (n < 2 || p[0] != '\'') return at;
    char a = p[1], b = n > 2 ? p[2] : 0;
    if (fold && n > 2 && (unsigned char)a == 0xC5 && (unsigned char)b == 0xBF) return at + 3;
    if (fold && a >= 'A' && a <= 'Z') a = (char)(a + 32);
    if (fold && b >= 'A' && b <= 'Z') b = (char)(b + 32);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return at + 2;
    for (int i = 0; i < 3; i++)
        if (a == two[i][0] && b == two[i][1]) return at + 3;
    return at;
}

/* What the quick rules return for a match that they cannot know.  They take and return places in a
   block. */
enum { UNKNOWN = 64 };
#define QUICK static inline __attribute__((always_inline))
typedef uint32_t (*quick_fn)(const ascii_block *b, uint32_t at);

/* An end before which the match was ASCII: it is the end unless what follows may belong to it. */
QUICK uint32_t known_end(const ascii_block *b, uint32_t end)
{
    return b->stop >> end & 1 ? UNKNOWN : end;
}

QUICK uint32_t letters_end(const ascii_block *b, uint32_t at)
{
    return known_end(b, ascii_end(b->letter, at));
}

QUICK uint32_t digits_end(const ascii_block *b, uint32_t at, uint32_t most)
{
    uint32_t end = ascii_end(b->digit, at);

    return end - at >= most ? at + most : known_end(b, end);
}

/* [chars]+[\r\n]* from a place that is known to have one. */
QUICK uint32_t marks_end(const ascii_block *b, uint64_t chars, uint32_t at)
{
    uint32_t end = known_end(b, ascii_end(chars, at + 1));

    return end == UNKNOWN ? UNKNOWN : known_end(b, ascii_end(b->line, end));
}

/* blanks(), or where `lines` lines_or_blanks(). */
QUICK uint32_t blanks_end(const ascii_block *b, uint32_t at, bool lines, bool split)
{
    uint32_t end = known_end(b, ascii_end(b->blank, at));

    if (end == at || end == UNKNOWN) return UNKNOWN;
    if (end == at + 1) return end;
    uint64_t line = b->line & (((uint64_t)1 << end) - ((uint64_t)1 << at));
    if (lines && line) return 64 - (uint32_t)__builtin_clzll(line);
    return split && b->digit >> end & 1 ? end : end - 1;
}

/* A contraction, in a block that has three bytes from `at` on; `at` if none. */
QUICK uint32_t contraction_end(const ascii_block *b, uint32_t at, bool fold)
{
    if (b->p[at] != '\'') return at;
    if (b->stop >> at & 7) return UNKNOWN;
    return (uint32_t)contraction((cairn_str){b->p, 64}, at, fold);
}

QUICK uint32_t gpt2_quick(const ascii_block *b, uint32_t at)
{
    const uint64_t other = ~(b->letter | b->digit | b->blank | b->stop);
    uint32_t end = contraction_end(b, at, false), from = at + (b->p[at] == ' ');

    if (end != at) return end;
    if (b->letter >> from & 1) return letters_end(b, from + 1);
    if (b->digit >> from & 1) return known_end(b, ascii_end(b->digit, from + 1));
    if (other >> from & 1) return known_end(b, ascii_end(other, from + 1));
    return from > at && b->stop >> from & 1 ? UNKNOWN : blanks_end(b, at, false, false);
}

QUICK uint32_t cl100k_quick(const ascii_block *b, uint32_t at, uint32_t digits)
{
    const uint64_t other = ~(b->letter | b->digit | b->blank | b->stop);

    if (b->letter >> at & 1) return letters_end(b, at + 1);
    if (b->digit >> at & 1) return digits_end(b, at, digits);
    uint32_t end = contraction_end(b, at, true);
    if (end != at) return end;
    if (b->letter >> (at + 1) & ~(b->line >> at) & 1) return letters_end(b, at + 2);
    if (b->stop >> (at + 1) & 1) return UNKNOWN;
    if ((other >> at & 1) || (b->p[at] == ' ' && (other >> (at + 1) & 1)))
        return marks_end(b, other, at);
    return blanks_end(b, at, true, false);
}

QUICK uint32_t o200k_quick(const ascii_block *b, uint32_t at)
{
    const uint64_t other = ~(b->letter | b->digit | b->blank | b->stop);

    if (b->digit >> at & 1) return digits_end(b, at, 3);
    uint32_t from = at + !(b->letter >> at & 1), end;
    if (b->letter >> from & ~(b->line >> at) & 1) {
        end = ascii_end(b->upper, from);
        end = known_end(b, ascii_end(b->letter & ~b->upper, end));
        return end == UNKNOWN ? UNKNOWN : contraction_end(b, end, true);
    }
    if (b->stop >> (at + 1) & 1) return UNKNOWN;
    if ((other >> at & 1) || (b->p[at] == ' ' && (other >> (at + 1) & 1))) {
        end = marks_end(b, other, at);
        return end != UNKNOWN && b->p[end] == '/' ? UNKNOWN : end;
    }
    return blanks_end(b, at, true, false);
}

QUICK uint32_t deepseek3_quick_in(const ascii_block *b, uint32_t at, bool split)
{
    const uint64_t marks = b->mark;

    if (b->letter >> at & 1) return letters_end(b, at + 1);
    if (split && b->digit >> at & 1) return digits_end(b, at, 3);
    if (b->letter >> (at + 1) & ~(b->line >> at) & 1) {
        uint32_t end = ascii_end(b->letter, at + 2);
        if (marks >> at & 1 && end < b->n) return end; /* whatever follows */
        return known_end(b, end);
    }
    if (b->stop >> (at + 1) & 1) return UNKNOWN;
    if ((marks >> at & 1) || (b->p[at] == ' ' && (marks >> (at + 1) & 1)))
        return marks_end(b, marks, at);
    return blanks_end(b, at, true, split);
}

QUICK uint32_t deepseek3_quick(const ascii_block *b, uint32_t at)
{
    return deepseek3_quick_in(b, at, false);
}
QUICK uint32_t deepseek3_all_quick(const ascii_block *b, uint32_t at)
{
    return deepseek3_quick_in(b, at, true);
}

QUICK uint32_t llama3_quick(const ascii_block *b, uint32_t at)
{
    return cl100k_quick(b, at, 3);
}
QUICK uint32_t qwen_quick(const ascii_block *b, uint32_t at)
{
    return cl100k_quick(b, at, 1);
}

#endif
