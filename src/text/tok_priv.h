/* What the files of the tokenizer share.  A tok is a pipeline, built once by tok_hf.c or tok_gguf.c
   and read-only from then on:
     text → added tokens cut out → normalised → split into words → model → ids → BOS/EOS around. */
#ifndef TEXT_TOK_PRIV_H
#define TEXT_TOK_PRIV_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/str.h"
#include "base/thread.h"
#include "text/charsmap.h"
#include "text/tok.h"

enum {
    TOK_MAX_VOCAB = 4 << 20, /* ids; the largest vocabularies known have 262,208 */
    TOK_MAX_MERGES = 16 << 20,
    TOK_MAX_PIECE = 1 << 16, /* bytes of one piece */
    TOK_MAX_CONTENT = 1024,  /* bytes that a normalizer or decoder puts into a text at a place */
    TOK_MAX_OUT = 32 << 20,  /* bytes of all pieces after their decoder; Gemma's have 2 MB */
    TOK_MAX_ADDED = 2 << 20, /* bytes of all added tokens; the most known have 0.1 MB */
    TOK_MAX_STEPS = 64,      /* normalizers, pre-tokenizers, decoders of one file */
    TOK_MAX_TEXT = 1 << 28,  /* bytes of one text: offsets fit 32 bits after any expansion */
};

/* Flags of an id. */
enum {
    TOK_F_USED = 1,
    TOK_F_SPECIAL = 2, /* left out of text unless kept */
    TOK_F_ADDED = 4,
    TOK_F_EOS = 8,
    TOK_F_BYTE = 16,        /* one raw byte: <0x0A> */
    TOK_F_UNSCORED = 32,    /* Unigram: does not count for the worst score */
    TOK_F_UNREACHABLE = 64, /* no text becomes it */
};

typedef struct span {
    uint32_t off, len;
} span;

/* added.c: texts that become ids before anything else looks at them. */

typedef struct added {
    cairn_str text;
    int32_t id;
    bool special, lstrip, rstrip, single_word, normalized;
} added;

typedef struct trie_node {
    uint32_t child, sibling; /* indices; 0: none (the root is nobody's child) */
    uint32_t match;          /* 1 + index of the added token that ends here; 0: none */
    uint8_t byte;
} trie_node;

enum { TRIE_FIRST = 8 };

typedef struct trie {
    trie_node *node;
    uint32_t n, cap;
    uint32_t root[256]; /* the root's children */
    uint32_t n_first;   /* how many */
    uint8_t first[TRIE_FIRST];
} trie;

typedef struct piece {
    span at;
    int32_t id; /* -1: text */
} piece;

void trie_deinit(trie *t);
uint32_t trie_child(const trie *t, uint32_t node, uint8_t byte); /* 0: none */
cairn_status trie_add(trie *t, cairn_str text, uint32_t value); /* the first of equal texts stays */
/* Longest entry at the start of s[at…]: its length, 0 if none. */
size_t trie_longest(const trie *t, cairn_str s, size_t at, uint32_t *value);
/* Cuts s at the added tokens of t (leftmost, then longest) and appends pieces to `out`. */
cairn_status added_cut(const trie *t, const added *list, cairn_str s, bool parse_special, buf *out);

/* normalize.c. */

typedef struct regex regex;

typedef enum norm_kind {
    NORM_NFC,
    NORM_NFD,
    NORM_NFKC,
    NORM_NFKD,
    NORM_LOWERCASE,
    NORM_PREPEND,
    NORM_REPLACE,
    NORM_STRIP,
    NORM_STRIP_ACCENTS,
    NORM_BYTE_LEVEL,
    NORM_BERT,
    NORM_NMT,
    NORM_PRECOMPILED,
    NORM_SPM
} norm_kind;

typedef struct norm_step {
    norm_kind kind;
    cairn_str from, to; /* PREPEND: to; REPLACE: from (or re) and to */
    regex *re;
    bool left, right;    /* STRIP; SPM: a space before, behind the text */
    bool clean, chinese; /* BERT */
    bool bert;           /* STRIP_ACCENTS: nonspacing marks only */
    bool squeeze;        /* SPM: runs of spaces are one, none at the ends */
    bool escape;         /* SPM: U+2581 for spaces */
    charsmap map;        /* PRECOMPILED, SPM */
    const trie *keep;    /* SPM: what is not normalised */
    uint64_t *safe;      /* normal forms: a bit for each code point that they leave alone */
} norm_step;

/* Fills step->safe; allocates from a. */
cairn_status norm_prepare(norm_step *s, arena *a);
/* norm_spm.c */
void norm_spm(const norm_step *step, cairn_str s, buf *out);
void norm_precompiled(const norm_step *step, cairn_str s, buf *out, bool *same);
/* Result in *out: s itself if nothing changes, else the bytes of x or y. */
cairn_status norm_run(const norm_step *step, size_t n, cairn_str s, buf *x, buf *y, cairn_str *out,
                      cairn_diag *dg);

/* norm_start.c.  How many bytes of the result came from the first character of s, which is not empty, or
   were put before it. */
cairn_status norm_head(const norm_step *step, size_t n, cairn_str s, size_t *head, cairn_diag *dg);

/* regex.c: Oniguruma with limits. */

cairn_status regex_new(cairn_str pattern, const char *where, regex **out, cairn_diag *dg);
void regex_free(regex *r);
typedef struct regex_iter {
    const regex *re;
    cairn_str s;
    size_t at, last_end;  /* last_end: end of the last match, SIZE_MAX before the first */
    void *region, *param; /* the library's */
} regex_iter;
cairn_status regex_begin(regex_iter *it, const regex *re, cairn_str s);
/* The next match, as the tokenizers package iterates; E_LIMIT over the retry limit. */
cairn_status regex_next(regex_iter *it, bool *found, size_t *from, size_t *to, cairn_diag *dg);
void regex_end(regex_iter *it);

/* scan.c: hand-written equals of well-known split rules. */

/* End of the match that begins at `at`; `at` itself if the rule matches nothing there. */
typedef size_t (*scan_fn)(cairn_str s, size_t at);
typedef struct scanner {
    const char *pattern;
    scan_fn match;
    /* The ends of the words from `at` on, matches and what lies between two: how many, `most` at most,
       0 at the end of s. */
    uint32_t (*words)(cairn_str s, size_t at, uint32_t *end, uint32_t most);
    scan_fn next; /* the first place from `at` on where it may match; NULL: any */
} scanner;
/* NULL if the pattern is not one of the known ones. */
const scanner *scan_find(cairn_str pattern);
/* The rule of the Whitespace pre-tokenizer: words, and runs of neither words nor white space. */
extern const scanner scan_whitespace;

/* pretok.c. */

typedef enum pre_kind {
    PRE_SCAN,
    PRE_REGEX,
    PRE_LITERAL,
    PRE_DIGIT,
    PRE_PUNCTUATION,
    PRE_SPACE,
    PRE_METASPACE,
    PRE_PREFIX,       /* `lit` before each word; if empty, a space before each without one */
    PRE_DIGIT_GROUPS, /* the rules of digits in threes */
    PRE_FIXED,        /* words of `count` characters */
    PRE_SCRIPTS,      /* where the script changes */
    PRE_BYTES         /* bytes become the characters of the byte-level alphabet */
} pre_kind;

typedef enum pre_behavior {
    PRE_REMOVED,
    PRE_ISOLATED,
    PRE_MERGED_WITH_PREVIOUS,
    PRE_MERGED_WITH_NEXT,
    PRE_CONTIGUOUS
} pre_behavior;

typedef enum pre_scheme { PRE_ALWAYS, PRE_FIRST, PRE_NEVER } pre_scheme;

/* Digits in threes from the right: any numbers; decimal digits that end a word; the places between. */
typedef enum pre_groups { PRE_GROUPS, PRE_WORD_GROUPS, PRE_GROUP_STARTS } pre_groups;

typedef struct pre_step {
    pre_kind kind;
    pre_behavior behavior;
    bool invert;
    const scanner *scan;
    regex *re;
    cairn_str lit;     /* LITERAL; METASPACE: what stands for a space */
    pre_scheme scheme; /* METASPACE */
    bool split;        /* METASPACE */
    size_t count;      /* FIXED */
    pre_groups groups; /* DIGIT_GROUPS */
} pre_step;

/* scan.c.  The step of a split rule: a scanner where one is known, else the regex.  s->behavior is
   set. */
cairn_status pre_of_pattern(cairn_str pattern, const char *where, pre_step *s, cairn_diag *dg);

/* Words that were encoded lately, each with its few ids: the same that the model would find, so that
   what is in it never shows. */
typedef struct word_slot {
    uint8_t len, n; /* len 0: free */
    int32_t id[7];
    uint64_t key[4]; /* the word's bytes, zeros behind */
    /* a cache line further, which only longer words need: */
    uint64_t long_key[4];
    int32_t long_id[8];
} word_slot;

/* The same for most words, in half a cache line. */
typedef struct hot_slot {
    uint64_t key[2]; /* the word's bytes, zeros behind */
    int32_t id[3];
    uint8_t len, n; /* len 0: free */
} hot_slot;
_Static_assert(sizeof(hot_slot) == 32, "two in a cache line");

enum { WORD_SLOTS = 16384, WORD_IDS = 15, WORD_BYTES = 64 }; /* 2 MiB */
enum { HOT_SLOTS = 65536, HOT_IDS = 3, HOT_BYTES = 16 };     /* 2 MiB */

/* Symbols l and r become `into`: ids. */
typedef struct bpe_merge {
    uint32_t l, r, into;
} bpe_merge;

/* The same as it is asked for. */
typedef struct bpe_pair {
    uint32_t l, r, id, rank; /* rank UINT32_MAX: never */
} bpe_pair;

enum { PAIR_SLOTS = 8192 }; /* pairs that were looked up lately, 128 KiB */

/* Scratch of one call of tok_encode, kept for the next. */
typedef struct work {
    void *cache;       /* the block of the three below, which begin with a cache line */
    word_slot *words;  /* WORD_SLOTS */
    hot_slot *hot;     /* HOT_SLOTS */
    bpe_pair *pairs;   /* PAIR_SLOTS, of ids UINT32_MAX where free */
    struct work *next; /* in the pool */
    buf norm_x, norm_y;
    buf text_x, text_y; /* words live in one, the next step writes the other */
    buf span_x, span_y; /* span */
    buf early, late;    /* piece */
    buf sym, heap;      /* the models' */
} work;

/* Does the last step find its words by scanning from one to the next?  Then it need not be run. */
static inline bool pre_is_scan(const pre_step *s)
{
    return s->kind == PRE_SCAN && s->behavior == PRE_ISOLATED && !s->invert;
}
/* scan.c: several steps of a known family become one that finds the same words. */
void pre_join(pre_step *step, size_t *n);
/* Does a step do otherwise at the start of the whole text? */
bool pre_asks_first(const pre_step *step, size_t n);
/* Splits s into words: spans (in w->span_x) of *text. `head`: bytes of s that came from the first character of
   the whole text. */
cairn_status pretok_run(const pre_step *step, size_t n, cairn_str s, size_t head, work *w,
                        cairn_str *text, cairn_diag *dg);

/* Models. */

typedef cairn_status (*tok_word_fn)(const tok *t, cairn_str word, work *w, buf *ids,
                                    cairn_diag *dg);
typedef struct tok_pool tok_pool;

/* tok_words.c: words of a text, one behind the other. */
enum {
    WORD_BATCH = 64
}; /* whose look-ups wait for memory together; their keys take 2 KiB of stack */
typedef struct word_list {
    cairn_str s;
    size_t room; /* bytes that may be read at s.ptr */
    size_t at;   /* where the first one begins */
    uint32_t n;  /* ≤ WORD_BATCH */
    uint32_t end[WORD_BATCH];
} word_list;
static inline void word_list_begin(word_list *l, cairn_str s, size_t room)
{
    l->s = s;
    l->room = room;
    l->at = 0;
    l->n = 0;
}
/* Appends their ids, from the cache or else from `model`. */
cairn_status words_ids(const tok *t, tok_word_fn model, const word_list *l, work *w, buf *ids,
                       cairn_diag *dg);
/* The same for all of s as one word. */
cairn_status word_ids(const tok *t, tok_word_fn model, cairn_str s, size_t room, work *w, buf *ids,
                      cairn_diag *dg);
cairn_status pool_new(tok_pool **out);
void pool_free(tok_pool *p);
work *pool_take(tok_pool *p); /* NULL: no memory */
void pool_give(tok_pool *p, work *w);

/* A neighbour list over a word's symbols. */
typedef struct sym {
    uint32_t id;  /* BPE; models with scores: where it begins */
    uint32_t len; /* bytes; 0: merged into the one before */
    int32_t prev, next;
} sym;

/* Does the symbol at i merge with the next, when (least first), and into what? */
typedef bool (*pair_fn)(const tok *t, cairn_str word, const sym *s, int32_t i, uint32_t *rank,
                        uint32_t *id);
/* tok_merge.c: merges a list of n symbols, in order, in place. */
cairn_status merge_long(const tok *t, cairn_str word, pair_fn pair, sym *s, int32_t n, work *w);

typedef struct bpe {
    buf list; /* of bpe_merge, in the order of their ranks; own memory */
    uint32_t *
        slot; /* by a hash of the sides: a merge's number in the list, from 1 on, in the bits of `mask`, and
                       above them bits of the hash; 0: free.  What is written at random is small so. */
    uint32_t mask;
    uint64_t *
        filter; /* a bit by the pair's hash: clear where no pair of that hash merges, which is known
                         without a look into the slots, mostly a miss of all caches */
    int filter_shift;
    uint64_t *ascii;       /* rank and id of two ASCII characters, 128 by 128: most first steps */
    int32_t byte_id[256];  /* byte-level: the byte's id; else byte fallback; -1: none */
    int32_t ascii_id[128]; /* not byte-level: the character's id */
    bool byte_fallback, fuse_unk, ignore_merges, keep_first_rank;
    bool rank_is_id;          /* of what a merge makes; else its place in the list */
    cairn_str prefix, suffix; /* continuing_subword_prefix, end_of_word_suffix */
    uint8_t *whole; /* for each id: does its text encode to just it?  0 unknown, 1 yes, 2 no;
                       relaxed atomics: every thread finds the same */
    /* tok_cuts.c's; NULL: words cannot be cut */
    uint64_t *known; /* a bit for each character that is a piece */
    uint64_t *pairs; /* by a hash: two characters that some piece has side by side */
    uint64_t (
        *cuts)[2]; /* for each ASCII character: a bit for each that may be cut off behind it */
    uint64_t runs; /* a bit for each length of a run of spaces that is cut off what follows */
    uint32_t last_run, first_mixed; /* of the merges of U+2581 alone, of it with something else */
    bool spaces;                    /* a space stands for U+2581, which no normalizer has put */
    /* While loading: */
    buf tmp;
    uint32_t n_left;
    uint16_t *
        left; /* for each id below n_left: bytes of the first half of a merge that makes it, 0: none does; NULL: not
                       known */
} bpe;

/* SentencePiece: a piece that begins the text with U+2581 loses it: once, or each while there is no
   text yet. */
typedef enum tok_bos_space { TOK_BOS_KEEP, TOK_BOS_ONCE, TOK_BOS_EACH } tok_bos_space;

typedef struct tok_decoder {
    bool byte_level; /* pieces joined as bytes, then U+FFFD for what is not UTF-8 */
    bool byte_runs;  /* a run of byte pieces that is not UTF-8 becomes one U+FFFD a byte */
    bool spaced;     /* no decoder: pieces joined with spaces */
    bool word_piece; /* the first piece as spelt (out[] has the space before a word) */
    bool each_byte;  /* malformed bytes become one U+FFFD each */
    tok_bos_space bos_space;
    cairn_str word_end;               /* BPEDecoder: a space, but nothing in the last piece */
    bool dedup;                       /* equal neighbours are one */
    bool drop_first;                  /* the first piece loses its `space` characters */
    cairn_str space;                  /* drop_first's character */
    cairn_str strip;                  /* one character */
    uint32_t strip_left, strip_right; /* most of it to drop at both ends of the whole text */
} tok_decoder;

/* Scratch that no call uses just now. */
struct tok_pool {
    mutex mu;
    work *free; /* guarded by mu */
    uint32_t n; /* guarded by mu: length of the list */
};

struct tok {
    tok_pool *pool; /* the one part of a tok that changes */
    arena mem;      /* everything below that is not said to be elsewhere */
    int32_t n;
    cairn_str *text; /* as the file spells it */
    char *texts;     /* what text[] points into, of its own; NULL: in mem */
    cairn_str *out;  /* the bytes it contributes */
    uint8_t *flag;
    size_t max_text, max_out; /* longest of each */
    size_t max_added;         /* longest added token, as it is looked for */

    map by_key;      /* the model's pieces: raw bytes if byte_level, else as spelt */
    map by_spelling; /* added pieces, and byte-level ones that no text can reach */
    bool are_utf8;   /* text[], as was seen while they were read */
    bool byte_level; /* the last pre-tokenizer maps bytes: left out, the keys are raw instead */

    added *added;
    uint32_t n_added;
    trie early, late; /* own memory */
    trie keep;        /* SentencePiece: user-defined pieces, which are not normalised or cut */
    trie pieces;      /* RWKV, PLaMo 2: all of them */
    norm_step *norm;
    size_t n_norm;
    pre_step *pre;
    size_t n_pre;
    bool
        space_after_special; /* GGUF SPM: a space before text at the start or after an added token */

    tok_word_fn word;
    bpe bpe;
    double *score;   /* SPM, Unigram, PLaMo 2 */
    bool short_sums; /* Unigram: sums of 32-bit floats, as SentencePiece has them */
    int32_t unk;     /* the model's own; -1: unknown text is left out */
    double unk_score;
    size_t max_word_chars; /* WordPiece */

    int32_t *before, *after; /* what TOK_ADD_SPECIAL puts around */
    uint32_t n_before, n_after;
    tok_decoder dec;
    tok_special special;
};

/* tok.c */
cairn_status tok_new(int32_t n, tok **out, cairn_diag *dg);
cairn_str tok_copy(tok *t, cairn_str s); /* ptr NULL: no memory */
/* After text[], flag[], dec and byte_level are set: keys, out[], longest.  `field` is what the file
   calls its pieces. */
cairn_status tok_index(tok *t, const char *where, const char *field, cairn_diag *dg);
cairn_status tok_index_added(tok *t, cairn_diag *dg);
/* The status of opening; what below knows no file is said of `where`. */
cairn_status tok_opened(cairn_status st, const char *where, cairn_diag *dg);
bool tok_byte_piece(cairn_str s, uint8_t *byte); /* <0x0A> */

/* tok_tiktoken.c: decodes into `into`, which has s.len bytes; the length, SIZE_MAX: not base64. */
size_t tok_base64(cairn_str s, char *into);

/* tok_hf_steps.c: the normalizer, pre_tokenizer and decoder objects of tokenizer.json */
cairn_status hf_normalizer(tok *t, json_val v, const char *where, cairn_diag *dg);
cairn_status hf_pre_tokenizer(tok *t, json_val v, const char *where, cairn_diag *dg);
/* tok_hf_post.c: fills before and after */
cairn_status hf_post_processor(tok *t, json_val v, const char *where, cairn_diag *dg);
/* tok_hf_decoder.c: fills dec, out[] and the byte flags */
cairn_status hf_decoder(tok *t, json_val v, const char *where, cairn_diag *dg);
/* tok_hf_added.c: fills added, and text[] and flag[] where the vocabulary has no such piece; the list is
   one of objects with texts and good ids.  Then, once the normalizer is known, what they show; then,
   once the pieces are indexed, which id of the model they keep. */
cairn_status hf_added_read(tok *t, json_val list, const char *where, cairn_diag *dg);
cairn_status hf_added_show(tok *t, cairn_diag *dg);
void hf_added_keep_ids(tok *t);
/* pattern: {"String": …} or {"Regex": …} */
cairn_status hf_pattern(tok *t, json_val v, const char *where, cairn_str *lit, regex **re,
                        cairn_str *pattern, cairn_diag *dg);

/* A text of the step that is put in, TOK_MAX_CONTENT long at most. */
cairn_status hf_content(tok *t, json_val v, const char *key, const char *where, cairn_str *out,
                        cairn_diag *dg);

/* tok_bpe.c.  Room for n_merge merges, which follow one by one or are in the list already. */
cairn_status bpe_init(tok *t, uint32_t n_merge, cairn_diag *dg);
static inline uint32_t bpe_n_merge(const bpe *b)
{
    return (uint32_t)(b->list.len / sizeof(bpe_merge));
}
enum { BPE_BATCH = MAP_BATCH / 3 }; /* merges whose look-ups wait for memory together */
/* The next n ≤ BPE_BATCH merges: the two sides of each, as the file spells them. */
cairn_status bpe_add_merges(tok *t, const cairn_str *side, size_t n, const char *where,
                            const char *field, cairn_diag *dg);
/* Those that are in the list already, of lists that were read with the vocabulary. */
struct hf_lists;
cairn_status bpe_add_lists(tok *t, const struct hf_lists *l, cairn_diag *dg);
/* The next merge by ids; of equal pairs the first or the last counts. */
void bpe_put(bpe *b, uint32_t l, uint32_t r, uint32_t into);
cairn_status bpe_finish(tok *t, cairn_diag *dg);
enum { BPE_SHORT = 48 }; /* symbols; the heap wins from about here */
/* Merges the n ≤ BPE_SHORT symbols of a word in place; how many are left. */
uint32_t bpe_merge_short(const bpe *b, bpe_pair *lately, cairn_str word, uint32_t *id, uint32_t n);
/* A word, or a part of one that no merge reaches out of. */
cairn_status bpe_part(const tok *t, cairn_str word, work *w, buf *ids, cairn_diag *dg);
#define BPE_SPACE "\xE2\x96\x81" /* U+2581, SentencePiece's space */
/* tok_cuts.c */
cairn_status bpe_find_cuts(tok *t, cairn_diag *dg);
cairn_status bpe_word(const tok *t, cairn_str word, work *w, buf *ids, cairn_diag *dg);
/* tok_spm.c, tok_unigram.c, tok_wordpiece.c, tok_greedy.c */
cairn_status spm_word(const tok *t, cairn_str word, work *w, buf *ids, cairn_diag *dg);
cairn_status unigram_finish(tok *t, const char *where, cairn_diag *dg);
cairn_status unigram_word(const tok *t, cairn_str word, work *w, buf *ids, cairn_diag *dg);
cairn_status wordlevel_word(const tok *t, cairn_str word, work *w, buf *ids, cairn_diag *dg);
cairn_status wordpiece_word(const tok *t, cairn_str word, work *w, buf *ids, cairn_diag *dg);
cairn_status rwkv_word(const tok *t, cairn_str word, work *w, buf *ids, cairn_diag *dg);
cairn_status plamo2_word(const tok *t, cairn_str word, work *w, buf *ids, cairn_diag *dg);

static inline bool bit_of(const uint64_t *bits, uint64_t i)
{
    return bits[i / 64] >> (i % 64) & 1;
}

static inline void set_bit(uint64_t *bits, uint64_t i)
{
    bits[i / 64] |= (uint64_t)1 << (i % 64);
}

static inline void ids_put(buf *ids, int32_t id)
{
    buf_add(ids, &id, sizeof id);
}

#endif
