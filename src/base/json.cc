/* The parser: simdjson's DOM interface behind base/json.h, and nothing else in C++.  A document is
   simdjson's tape (its documented layout: a type in the high byte of each word, a payload below) plus
   its string bytes; the parser itself is gone when json_parse returns.  No exception leaves this
   file.  json_read.c has the checked getters, json_write.c the writer. */
#include <simdjson.h>

#include <cmath>
#include <cstring>
#include <new>

extern "C" {
#include "base/alloc.h"
#include "base/buf.h"
#include "base/diag.h"
}
#include "base/json_priv.h"

struct json_doc {
    simdjson::dom::document dom;
    char *text;       /* what `longs` point into; NULL: no integer is long */
    json_long *longs; /* by place; in the block of `text` */
    size_t n_longs;
};

namespace
{
const json_doc *doc_of(json_val v)
{
    return static_cast<const json_doc *>(v.doc);
}

uint64_t word(json_val v, uint64_t i)
{
    return doc_of(v)->dom.tape[i];
}

char tape_type(json_val v)
{
    return v.doc ? static_cast<char>(word(v, v.at) >> 56) : '\0';
}

uint64_t payload(json_val v)
{
    return word(v, v.at) & 0x00ffffffffffffffULL;
}

/* Index of the word after the value. */
uint64_t after(json_val v)
{
    switch (tape_type(v)) {
    case '{':
    case '[':
        return static_cast<uint32_t>(payload(v));
    case 'l':
    case 'u':
    case 'd':
        return v.at + 2;
    default:
        return v.at + 1;
    }
}

cairn_str string_at(json_val v)
{
    const uint8_t *p = doc_of(v)->dom.string_buf.get() + payload(v);
    uint32_t n;
    std::memcpy(&n, p, sizeof n);
    return cairn_str{reinterpret_cast<const char *>(p + sizeof n), n};
}

cairn_status refuse(simdjson::error_code e, cairn_str text, bool any, cairn_diag *dg)
{
    if (e == simdjson::MEMALLOC) return diag_set(dg, CAIRN_E_NOMEM, "JSON of %zu bytes", text.len);
    if (e == simdjson::CAPACITY)
        return diag_set(dg, CAIRN_E_LIMIT, "JSON of %zu bytes is too big", text.len);
    const json_place place = json_locate(text, any);
    size_t line = 1, start = 0;
    for (size_t i = 0; i < place.at && i < text.len; i++)
        if (text.ptr[i] == '\n') {
            line++;
            start = i + 1;
        }
    const cairn_status st = e == simdjson::DEPTH_ERROR ? CAIRN_E_LIMIT : CAIRN_E_CORRUPT;
    return diag_set(dg, st, "JSON, byte %zu (line %zu, column %zu): %s", place.at, line,
                    place.at - start + 1, place.what ? place.what : simdjson::error_message(e));
}

/* Memory that simdjson takes by itself: a word of the tape and an index for each byte at most, and the strings. */
void advise(json_doc *d, simdjson::dom::parser &parser, size_t n)
{
    mem_advise_huge(d->dom.tape.get(), n * sizeof(uint64_t));
    mem_advise_huge(d->dom.string_buf.get(), n);
    mem_advise_huge(parser.implementation->structural_indexes.get(), n * sizeof(uint32_t));
}

simdjson::error_code parse_into(json_doc *d, const char *padded, size_t n)
{
    try {
        simdjson::dom::parser parser;
        const auto ready = parser.allocate(n, JSON_MAX_DEPTH + 1);
        if (ready) return ready;
        const auto home = d->dom.allocate(n);
        if (home) return home;
        advise(d, parser, n);
        return parser.parse_into_document(d->dom, padded, n, false).error();
    } catch (...) {
        return simdjson::MEMALLOC; /* nothing else can be thrown by the above */
    }
}
} // namespace

extern "C" {

/* Whether JSON may begin so: what may not is refused before it is copied. */
static bool may_be_json(cairn_str text)
{
    size_t i = 0;
    while (i < text.len && std::strchr(" \t\r\n", text.ptr[i]) && text.ptr[i]) i++;
    return i < text.len && text.ptr[i] && std::strchr("{[\"-0123456789tfn", text.ptr[i]);
}

static void set_infinite(json_doc *d, uint64_t at, int sign)
{
    const double x = sign < 0 ? -HUGE_VAL : HUGE_VAL;
    std::memcpy(&d->dom.tape[at + 1], &x, sizeof x);
}

/* Numbers of the tape are in the order of the text. */
static void place_longs(json_doc *d, uint64_t n_words)
{
    uint64_t ordinal = 0;
    size_t k = 0;
    for (uint64_t i = 1; i < n_words && k < d->n_longs; i++) {
        const char t = static_cast<char>(d->dom.tape[i] >> 56);
        if (t != 'l' && t != 'u' && t != 'd') continue;
        if (d->longs[k].at == ordinal++) {
            if (d->longs[k].infinite) set_infinite(d, i, d->longs[k].infinite);
            d->longs[k++].at = i;
        }
        i++;
    }
}

static bool keep_longs(json_doc *d, cairn_str text, const buf *longs)
{
    if (!longs->len) return true;
    char *p = static_cast<char *>(mem_alloc(longs->len + text.len, MEM_JSON));
    if (!p) return false;
    std::memcpy(p, longs->ptr, longs->len);
    std::memcpy(p + longs->len, text.ptr, text.len);
    d->longs = reinterpret_cast<json_long *>(p);
    d->text = p + longs->len;
    d->n_longs = longs->len / sizeof(json_long);
    place_longs(d, d->dom.tape[0] & 0x00ffffffffffffffULL);
    return true;
}

/* Under a sanitizer that watches every byte nothing is read behind a text. */
#if defined(__SANITIZE_ADDRESS__)
enum { WATCHED = 1 };
#elif defined(__has_feature)
enum { WATCHED = __has_feature(address_sanitizer) };
#else
enum { WATCHED = 0 };
#endif

/* The parser may read a few bytes behind the text.  A small one is copied for that; of a big one, whose copy
   would cost as much as its parsing, this is so only where they might lie in a page that is not there. */
static bool must_copy(cairn_str text)
{
    if (WATCHED) return true;
    const size_t page = 4096, big = 1 << 20;
    const size_t in_page = (reinterpret_cast<uintptr_t>(text.ptr) + text.len) % page;
    return text.len < big || in_page == 0 || in_page + simdjson::SIMDJSON_PADDING > page;
}

static char *padded_copy(cairn_str text)
{
    char *p = static_cast<char *>(mem_alloc(text.len + simdjson::SIMDJSON_PADDING, MEM_JSON));
    if (!p) return nullptr;
    if (text.len) std::memcpy(p, text.ptr, text.len);
    std::memset(p + text.len, 0, simdjson::SIMDJSON_PADDING);
    return p;
}

static cairn_status parse(cairn_str text, bool any, bool widened, json_doc **out, cairn_diag *dg)
{
    if (text.len > SIZE_MAX - simdjson::SIMDJSON_PADDING)
        return diag_set(dg, CAIRN_E_LIMIT, "JSON of %zu bytes is too big", text.len);
    if (!may_be_json(text)) return refuse(simdjson::TAPE_ERROR, text, any, dg);
    void *home = mem_alloc(sizeof(json_doc), MEM_JSON);
    const bool copy = must_copy(text);
    char *padded = copy ? padded_copy(text) : nullptr;
    if (!home || (copy && !padded)) {
        mem_free(home);
        mem_free(padded);
        return diag_set(dg, CAIRN_E_NOMEM, "JSON of %zu bytes", text.len);
    }
    json_doc *d = new (home) json_doc();
    d->text = nullptr;
    d->n_longs = 0;
    const simdjson::error_code e = parse_into(d, copy ? padded : text.ptr, text.len);
    mem_free(padded);
    if (!e) {
        *out = d;
        return CAIRN_OK;
    }
    json_free(d);
    if (widened || e != simdjson::NUMBER_ERROR) return refuse(e, text, any, dg);
    buf wide, longs;
    buf_init(&wide, MEM_JSON);
    buf_init(&longs, MEM_JSON);
    json_widen(text, any, &wide, &longs);
    cairn_status st = buf_status(&wide);
    if (st == CAIRN_OK) st = buf_status(&longs);
    if (st == CAIRN_OK) st = parse(buf_view(&wide), any, true, &d, dg);
    if (st == CAIRN_OK && !keep_longs(d, text, &longs)) {
        json_free(d);
        st = CAIRN_E_NOMEM;
    }
    if (st == CAIRN_OK)
        *out = d;
    else if (st == CAIRN_E_NOMEM)
        (void)diag_set(dg, st, "JSON of %zu bytes", text.len);
    else /* what stopped the second reading, with its place in the text as it was given */
        st = refuse(st == CAIRN_E_LIMIT ? simdjson::DEPTH_ERROR : e, text, any, dg);
    buf_deinit(&wide);
    buf_deinit(&longs);
    return st;
}

cairn_status json_parse(cairn_str text, json_doc **out, cairn_diag *dg)
{
    return parse(text, false, false, out, dg);
}

cairn_status json_parse_any(cairn_str text, json_doc **out, cairn_diag *dg)
{
    return parse(text, true, false, out, dg);
}

void json_free(json_doc *d)
{
    if (!d) return;
    if (d->text) mem_free(d->longs);
    d->~json_doc();
    mem_free(d);
}

json_val json_root(const json_doc *d)
{
    return json_val{d, 1}; /* word 0 is the root mark */
}

json_type json_typeof(json_val v)
{
    switch (tape_type(v)) {
    case 'n':
        return JSON_NULL;
    case 't':
    case 'f':
        return JSON_BOOL;
    case 'l':
        return JSON_INT;
    case 'u':
        return JSON_UINT;
    case 'd':
        return JSON_FLOAT;
    case '"':
        return JSON_STR;
    case '[':
        return JSON_ARR;
    case '{':
        return JSON_OBJ;
    default:
        return JSON_NONE;
    }
}

json_iter json_each(json_val v)
{
    const char t = tape_type(v);
    if (t != '{' && t != '[') return json_iter{json_val{nullptr, 0}, 0, false};
    return json_iter{json_val{v.doc, v.at + 1}, after(v) - 1, t == '{'};
}

bool json_next(json_iter *it, json_val *v)
{
    cairn_str key;
    if (it->object) return json_next_member(it, &key, v);
    if (it->next.at >= it->end) return false;
    *v = it->next;
    it->next.at = after(it->next);
    return true;
}

bool json_next_member(json_iter *it, cairn_str *key, json_val *v)
{
    if (!it->object || it->next.at >= it->end) return false;
    *key = string_at(it->next);
    it->next.at++;
    *v = it->next;
    it->next.at = after(it->next);
    return true;
}

bool json_bool(json_val v, bool otherwise)
{
    const char t = tape_type(v);
    return t == 't' || (t != 'f' && otherwise);
}

int64_t json_int(json_val v, int64_t otherwise)
{
    const char t = tape_type(v);
    if (t == 'l') return static_cast<int64_t>(word(v, v.at + 1));
    if (t != 'd') return otherwise;
    const double x = json_num(v, 0);
    if (!(x >= -0x1p63 && x < 0x1p63)) return otherwise;
    const int64_t i = static_cast<int64_t>(x);
    return static_cast<double>(i) == x ? i : otherwise;
}

double json_num(json_val v, double otherwise)
{
    const char t = tape_type(v);
    if (t != 'l' && t != 'u' && t != 'd') return otherwise;
    const uint64_t bits = word(v, v.at + 1);
    if (t == 'l') return static_cast<double>(static_cast<int64_t>(bits));
    if (t == 'u') return static_cast<double>(bits);
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

cairn_str json_str(json_val v)
{
    return tape_type(v) == '"' ? string_at(v) : cairn_str{"", 0};
}

cairn_str json_digits(json_val v)
{
    if (tape_type(v) != 'd') return cairn_str{"", 0};
    const json_doc *d = doc_of(v);
    size_t lo = 0, hi = d->n_longs;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (d->longs[mid].at < v.at)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == d->n_longs || d->longs[lo].at != v.at) return cairn_str{"", 0};
    return cairn_str{d->text + d->longs[lo].from, d->longs[lo].len};
}

bool json_utf8_valid(cairn_str text)
{
    return text.len == 0 || simdjson::validate_utf8(text.ptr, text.len);
}

/* It does not tell its version at run time; each one's file has a name of its own, so that it is that of the headers. */
void json_library(buf *out)
{
    buf_printf(out, "simdjson %d.%d.%d (%s)", static_cast<int>(simdjson::SIMDJSON_VERSION_MAJOR),
               static_cast<int>(simdjson::SIMDJSON_VERSION_MINOR),
               static_cast<int>(simdjson::SIMDJSON_VERSION_REVISION),
               simdjson::get_active_implementation()->name().c_str());
}

/* The exact bits of an integer past INT64_MAX, for the writer. */
uint64_t json_uint_bits(json_val v)
{
    return word(v, v.at + 1);
}
}
