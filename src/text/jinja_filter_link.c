/* urlize: addresses of the web and of mail in a text become links.  The rules are jinja2's own regular
   expressions, written out: where a name of a host ends is always plain, so nothing is tried twice. */
#include "base/utf8.h"
#include "text/jinja_run.h"

/* Characters as an expression that ignores case sees them: the few beyond ASCII that fold to it too. */
static size_t folded(cairn_str s, size_t i, uint32_t *cp)
{
    const int k = utf8_decode(s.ptr + i, s.len - i, cp);
    if (*cp >= 'A' && *cp <= 'Z') *cp += 32;
    if (*cp == 0x130 || *cp == 0x131) *cp = 'i';
    if (*cp == 0x17f) *cp = 's';
    if (*cp == 0x212a) *cp = 'k';
    return (size_t)(k > 0 ? k : 1);
}

/* Bytes of s that spell the lower-case word; 0: it does not begin with it. */
static size_t spells(cairn_str s, const char *word)
{
    size_t i = 0;
    uint32_t cp;
    for (; *word; word++) {
        if (i == s.len) return 0;
        i += folded(s, i, &cp);
        if (cp != (unsigned char)*word) return 0;
    }
    return i;
}

static cairn_str from(cairn_str s, size_t i)
{
    return str_sub(s, i, s.len - i);
}

static bool among(char c, const char *set)
{
    return c && strchr(set, c);
}

/* Bytes at i of a word character or one of `more` (ASCII); 0: none. */
static size_t host_char(cairn_str s, size_t i, const char *more)
{
    if (i >= s.len) return 0;
    return among(s.ptr[i], more) ? 1 : jtext_word(s.ptr + i, s.len - i);
}

/* Up to `max` decimal digits at *i; answers how many. */
static size_t digits(cairn_str s, size_t *i, size_t max)
{
    size_t n = 0;
    while (n < max && *i < s.len) {
        uint32_t cp;
        const int k = utf8_decode(s.ptr + *i, s.len - *i, &cp);
        if (k <= 0 || !jtext_is(str_sub(s, *i, (size_t)k), IS_DECIMAL)) break;
        *i += (size_t)k;
        n++;
    }
    return n;
}

/* A port, then nothing or a path, query or fragment. */
static bool tail_ok(cairn_str s, size_t i)
{
    if (i < s.len && s.ptr[i] == ':') {
        i++;
        if (!digits(s, &i, 5)) return false;
    }
    return i == s.len || among(s.ptr[i], "/?#");
}

/* The labels of a name of a host from i to the end of such characters: where the last begins, or
   SIZE_MAX when one before it has not between `min` and `max` characters.  *end is the name's end. */
static size_t last_label(cairn_str s, size_t i, size_t min, size_t max, size_t *end)
{
    size_t begin = i, n = 0, k;
    bool ok = true;

    for (; (k = host_char(s, i, "%-.")) > 0; i += k) {
        if (s.ptr[i] != '.') {
            n++;
            continue;
        }
        ok = ok && n >= min && n <= max;
        n = 0;
        begin = i + 1;
    }
    *end = i;
    return ok ? begin : SIZE_MAX;
}

/* Letters of ASCII alone, or the prefix of an encoded name. */
static bool top_label(cairn_str s)
{
    size_t i = spells(s, "xn--"), n = 0, k;
    uint32_t cp;

    if (i) {
        for (; (k = host_char(s, i, "%")) > 0; i += k) n++;
        return i == s.len && n >= 2 && n <= 59;
    }
    for (; i < s.len; n++) {
        i += folded(s, i, &cp);
        if (cp < 'a' || cp > 'z') return false;
    }
    return n >= 2 && n <= 63;
}

static bool is_ipv4(cairn_str s, size_t *i)
{
    for (int part = 0; part < 4; part++) {
        if (part && (*i == s.len || s.ptr[(*i)++] != '.')) return false;
        if (!digits(s, i, 3)) return false;
    }
    return true;
}

static size_t hex_run(cairn_str s, size_t *i)
{
    size_t n = 0;
    while (n < 4 && *i < s.len && str_hex_digit(s.ptr[*i]) >= 0) {
        (*i)++;
        n++;
    }
    return n;
}

/* Two groups with colons, up to six more. */
static bool is_ipv6(cairn_str s, size_t *i)
{
    if (*i == s.len || s.ptr[(*i)++] != '[') return false;
    for (int part = 0; part < 8; part++) {
        hex_run(s, i);
        const bool colon = *i < s.len && s.ptr[*i] == ':';
        *i += colon;
        if (part < 2 && !colon) return false;
    }
    return *i < s.len && s.ptr[(*i)++] == ']';
}

static bool is_known_domain(cairn_str s)
{
    static const char *const top[] = {"com", "net", "int", "edu", "gov", "org", "info", "mil"};
    size_t end;
    const size_t at = last_label(s, 0, 2, 63, &end);

    if (at == SIZE_MAX || at == 0) return false;
    for (size_t k = 0; k < sizeof top / sizeof top[0]; k++)
        if (spells(from(s, at), top[k]) == end - at) return end > at && tail_ok(s, end);
    return false;
}

static bool is_address(cairn_str s)
{
    size_t scheme = spells(s, "https://"), end;
    if (!scheme) scheme = spells(s, "http://");
    const size_t host = scheme ? scheme : spells(s, "www.");

    if (host) {
        const size_t at = last_label(s, host, 1, SIZE_MAX, &end);
        if (at != SIZE_MAX && top_label(str_sub(s, at, end - at)) && tail_ok(s, end)) return true;
    }
    if (is_known_domain(s)) return true;
    end = scheme;
    if (scheme && is_ipv4(s, &end) && tail_ok(s, end)) return true;
    end = scheme;
    return scheme && is_ipv6(s, &end) && tail_ok(s, end);
}

static bool is_mail(cairn_str s)
{
    size_t at = s.len, dot = 0, i, k;
    bool plain = false; /* no hyphen behind the last dot */

    while (at > 0 && s.ptr[at - 1] != '@') at--;
    if (at < 2 || !host_char(s, at, "")) return false;
    for (i = at; (k = host_char(s, i, ".-")) > 0; i += k) {
        if (s.ptr[i] == '.') dot = i;
        plain = s.ptr[i] == '.' || (plain && s.ptr[i] != '-');
    }
    return i == s.len && plain && dot + 1 < s.len;
}

typedef struct linker {
    jrun *r;
    buf *out;
    buf rel, target; /* attributes, ready to write */
    jv limit;
    const jlist *schemes;
} linker;

/* What is shown of an address: its first characters, with dots for the rest. */
static bool shown_part(linker *l, cairn_str *s, bool *cut)
{
    const int64_t chars = (int64_t)jtext_count(*s);

    *cut = false;
    if (l->limit.t == J_MISSING || l->limit.t == J_NONE) return true;
    if (!jv_is_int(l->limit)) return jfail(l->r, "urlize: trim_url_limit must be an integer");
    int64_t n = jv_as_int(l->limit);
    if (chars <= n) return true;
    if (n < 0) n = n + chars < 0 ? 0 : n + chars;
    s->len = jtext_offset(*s, (size_t)n);
    *cut = true;
    return true;
}

static void put_link(linker *l, const char *scheme, cairn_str to, bool attributes, cairn_str shown,
                     bool cut)
{
    buf_printf(l->out, "<a href=\"%s", scheme);
    buf_str(l->out, to);
    buf_byte(l->out, '"');
    if (attributes) {
        buf_str(l->out, buf_view(&l->rel));
        buf_str(l->out, buf_view(&l->target));
    }
    buf_byte(l->out, '>');
    buf_str(l->out, shown);
    buf_puts(l->out, cut ? "...</a>" : "</a>");
}

static bool has_scheme(const linker *l, cairn_str s)
{
    for (uint32_t i = 0; i < l->schemes->n; i++) {
        const cairn_str scheme = jv_text(l->schemes->v[i]);
        if (s.len > scheme.len && str_starts(s, scheme)) return true;
    }
    return false;
}

static bool put_word(linker *l, cairn_str s)
{
    const cairn_str mailto = STR_LIT("mailto:");
    cairn_str shown = s;
    bool cut;

    if (is_address(s)) {
        const bool full = str_starts(s, STR_LIT("https://")) || str_starts(s, STR_LIT("http://"));
        if (!shown_part(l, &shown, &cut)) return false;
        put_link(l, full ? "" : "https://", s, true, shown, cut);
    } else if (str_starts(s, mailto) && is_mail(from(s, mailto.len))) {
        put_link(l, "", s, false, from(s, mailto.len), false);
    } else if (!str_starts(s, STR_LIT("www.")) && !str_starts(s, STR_LIT("@")) &&
               str_find(s, STR_LIT(":"), 0) == SIZE_MAX && is_mail(s)) {
        put_link(l, "mailto:", s, false, s, false);
    } else if (has_scheme(l, s)) {
        put_link(l, "", s, true, s, false);
    } else {
        buf_str(l->out, s);
    }
    return true;
}

static size_t count(cairn_str s, cairn_str what)
{
    size_t n = 0;
    for (size_t at = 0; (at = str_find(s, what, at)) != SIZE_MAX; at += what.len) n++;
    return n;
}

/* Brackets that the address opened stay with it: its end moves over as many closing ones. */
static void balance(cairn_str s, size_t begin, size_t *end)
{
    static const char *const pairs[][2] = {{"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}};

    for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++) {
        const cairn_str close = str_of(pairs[k][1]), middle = str_sub(s, begin, *end - begin);
        size_t n = count(middle, str_of(pairs[k][0])), at;
        if (n <= count(middle, close)) continue;
        while (n-- && (at = str_find(s, close, *end)) != SIZE_MAX) *end = at + close.len;
    }
}

/* One run of characters without white space: punctuation around an address is not part of it. */
static bool put_run(linker *l, cairn_str s)
{
    const cairn_str lt = STR_LIT("&lt;"), gt = STR_LIT("&gt;");
    size_t begin = 0, end = s.len;

    while (begin < s.len && (among(s.ptr[begin], "(<") || str_starts(from(s, begin), lt)))
        begin += s.ptr[begin] == '&' ? lt.len : 1;
    while (end > begin) {
        const cairn_str middle = str_sub(s, begin, end - begin);
        if (!among(s.ptr[end - 1], ")>.,") && !str_ends(middle, gt)) break;
        end -= s.ptr[end - 1] == ';' ? gt.len : 1;
    }
    balance(s, begin, &end);
    buf_put(l->out, s.ptr, begin);
    if (!put_word(l, str_sub(s, begin, end - begin))) return false;
    buf_str(l->out, from(s, end));
    return true;
}

static bool put_runs(linker *l, cairn_str s)
{
    for (size_t i = 0, k; i < s.len;) {
        size_t end = i;
        if ((k = jtext_space(s.ptr + i, s.len - i)) > 0) {
            buf_put(l->out, s.ptr + i, k);
            i += k;
            continue;
        }
        while (end < s.len && !jtext_space(s.ptr + end, s.len - end)) end++;
        if (!put_run(l, str_sub(s, i, end - i))) return false;
        i = end;
        if (l->out->len > JINJA_MAX_OUTPUT) return jfail_long(l->r, "urlize");
    }
    return true;
}

static bool put_attribute(jrun *r, const char *name, jv v, buf *b)
{
    buf_printf(b, " %s=\"", name);
    if (!jv_put_escaped(r, v, b)) return false;
    buf_byte(b, '"');
    return true;
}

/* rel: the words given, nofollow where asked for, noopener always; each once, in order. */
static bool put_rel(jrun *r, jv rel, bool nofollow, buf *b)
{
    const jv absent = jv_of(J_MISSING), split[2] = {absent, absent};
    const jv sort[3] = {jv_bool(false), jv_bool(true), absent}, join[2] = {jv_lit(" "), absent};
    jv words, dict, text;

    if (!jv_truth(rel)) rel = jv_lit("");
    if (rel.t != J_STR) return jfail(r, "urlize: rel must be a string");
    if (!jmethod_find(J_STR, STR_LIT("split"))->fn(r, rel, split, &words) ||
        !jv_new_dict(r, J_DICT, 2, &dict))
        return false;
    if (nofollow && !jdict_put(r, dict.u.dict, jv_lit("nofollow"), jv_none())) return false;
    if (!jdict_put(r, dict.u.dict, jv_lit("noopener"), jv_none())) return false;
    for (uint32_t i = 0; i < words.u.list->n; i++)
        if (!jdict_put(r, dict.u.dict, words.u.list->v[i], jv_none())) return false;
    return jfilter_find(STR_LIT("sort"))->fn(r, dict, sort, &words) &&
           jfilter_find(STR_LIT("join"))->fn(r, words, join, &text) &&
           put_attribute(r, "rel", text, b);
}

/* "name:" with up to two slashes. */
static bool is_scheme(cairn_str s)
{
    size_t i = 0, n = 0, k;
    for (; (k = host_char(s, i, ".+-")) > 0; i += k) n++;
    const cairn_str rest = from(s, i);
    return n >= 2 && (str_is(rest, ":") || str_is(rest, ":/") || str_is(rest, "://"));
}

static bool take_schemes(jrun *r, jv v, jv *list)
{
    if (v.t == J_MISSING || v.t == J_NONE) return jv_new_list(r, J_LIST, 0, list);
    if (!jv_to_list(r, v, J_LIST, list)) return false;
    for (uint32_t i = 0; i < list->u.list->n; i++) {
        const jv one = list->u.list->v[i];
        if (one.t != J_STR || !is_scheme(jv_text(one)))
            return jfail(r, "urlize: not a valid URI scheme prefix; expected one as in https://");
    }
    return true;
}

bool jv_urlize(jrun *r, jv in, const jv *arg, jv *out)
{
    buf b, escaped;
    linker l = {.r = r, .out = &b, .limit = arg[0]};
    jv schemes;

    buf_init(&b, MEM_TEXT);
    buf_init(&escaped, MEM_TEXT);
    buf_init(&l.rel, MEM_TEXT);
    buf_init(&l.target, MEM_TEXT);
    bool ok = put_rel(r, arg[3], jv_truth(arg[1]), &l.rel) && take_schemes(r, arg[4], &schemes);
    if (ok && jv_truth(arg[2])) ok = put_attribute(r, "target", arg[2], &l.target);
    if (ok) l.schemes = schemes.u.list;
    ok = ok && jv_put_escaped(r, in, &escaped) && jsteps(r, escaped.len);
    ok = ok && put_runs(&l, buf_view(&escaped));
    const buf *made[] = {&escaped, &l.rel, &l.target};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        if (ok && buf_status(made[i]) != CAIRN_OK) ok = jfail_as(r, CAIRN_E_NOMEM, "urlize");
    buf_deinit(&escaped);
    buf_deinit(&l.rel);
    buf_deinit(&l.target);
    return jv_give(r, &b, ok, out);
}
