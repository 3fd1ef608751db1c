/* One look at each byte.  Only members of the outermost object count, and of two with the name the first.  What
   is no JSON ends the reading; a surrogate without its other half is U+FFFD. */
#include "serve/json_member.h"

#include "base/str.h"

void json_member_init(json_member *m, const char *name)
{
    *m = (json_member){.name = name};
}

static void put_char(buf *out, uint32_t c)
{
    char s[4];
    size_t n = 0;

    if (c < 0x80) {
        s[n++] = (char)c;
    } else if (c < 0x800) {
        s[n++] = (char)(0xC0 | c >> 6);
    } else if (c < 0x10000) {
        s[n++] = (char)(0xE0 | c >> 12);
        s[n++] = (char)(0x80 | (c >> 6 & 63));
    } else {
        s[n++] = (char)(0xF0 | c >> 18);
        s[n++] = (char)(0x80 | (c >> 12 & 63));
        s[n++] = (char)(0x80 | (c >> 6 & 63));
    }
    if (c >= 0x80) s[n++] = (char)(0x80 | (c & 63));
    buf_put(out, s, n);
}

/* A half that waited for its other one, which did not come. */
static void put_lone(json_member *m, buf *out)
{
    if (m->high) put_char(out, 0xFFFD);
    m->high = 0;
}

static void put_unit(json_member *m, buf *out)
{
    const uint32_t u = m->unit;

    if (m->high && u >= 0xDC00 && u < 0xE000) {
        put_char(out, 0x10000 + ((m->high - 0xD800) << 10) + (u - 0xDC00));
        m->high = 0;
        return;
    }
    put_lone(m, out);
    if (u >= 0xD800 && u < 0xDC00)
        m->high = u;
    else
        put_char(out, u >= 0xDC00 && u < 0xE000 ? 0xFFFD : u);
}

static void hex_digit(json_member *m, char c, buf *out)
{
    const int v = str_hex_digit(c);

    if (v < 0) {
        m->state = MEMBER_END;
        return;
    }
    m->unit = m->unit << 4 | (uint32_t)v;
    if (--m->n_hex == 0) put_unit(m, out);
}

static void escape(json_member *m, char c, buf *out)
{
    static const char names[] = "\"\\/bfnrt", chars[] = "\"\\/\b\f\n\r\t";
    const char *at = memchr(names, c, sizeof names - 1);

    m->escaped = false;
    if (c == 'u') {
        m->n_hex = 4;
        m->unit = 0;
        return;
    }
    put_lone(m, out);
    if (at)
        buf_byte(out, chars[at - names]);
    else
        m->state = MEMBER_END;
}

static void text_byte(json_member *m, char c, buf *out)
{
    if (m->n_hex) {
        hex_digit(m, c, out);
    } else if (m->escaped) {
        escape(m, c, out);
    } else if (c == '\\') {
        m->escaped = true;
    } else {
        put_lone(m, out);
        if (c == '"')
            m->state = MEMBER_OTHER;
        else
            buf_byte(out, c);
    }
}

/* A key with an escape is taken for another one: no model writes a plain name so. */
static void key_byte(json_member *m, char c)
{
    if (c == '"' && !m->escaped) {
        m->state = MEMBER_COLON;
        return;
    }
    m->escaped = c == '\\' && !m->escaped;
    if (m->n_key < strlen(m->name) && m->name[m->n_key] == c)
        m->n_key++;
    else
        m->n_key = SIZE_MAX;
}

static void begin_value(json_member *m, char c)
{
    const bool ours = m->depth == 1 && !m->found && m->n_key == strlen(m->name);

    m->state = c == '"' ? (ours ? MEMBER_TEXT : MEMBER_STRING) : MEMBER_OTHER;
    m->found |= m->state == MEMBER_TEXT;
    m->depth += c == '{' || c == '[';
}

static void other_byte(json_member *m, char c)
{
    if (c == '"') m->state = MEMBER_STRING;
    if (c == '{' || c == '[') m->depth++;
    if (c == '}' || c == ']') m->depth--;
    if (m->depth == 0) m->state = MEMBER_END;
    if (c == ',' && m->depth == 1) m->state = MEMBER_KEY_OR_END;
}

static void string_byte(json_member *m, char c)
{
    if (m->escaped)
        m->escaped = false;
    else if (c == '\\')
        m->escaped = true;
    else if (c == '"')
        m->state = MEMBER_OTHER;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void one_byte(json_member *m, char c, buf *out)
{
    switch (m->state) {
    case MEMBER_BEFORE:
        if (is_space(c)) break;
        m->depth = 1;
        m->state = c == '{' ? MEMBER_KEY_OR_END : MEMBER_END;
        break;
    case MEMBER_KEY_OR_END:
        if (is_space(c)) break;
        m->n_key = 0;
        m->state = c == '"' ? MEMBER_KEY : MEMBER_END;
        break;
    case MEMBER_KEY:
        key_byte(m, c);
        break;
    case MEMBER_COLON:
        if (!is_space(c)) m->state = c == ':' ? MEMBER_VALUE : MEMBER_END;
        break;
    case MEMBER_VALUE:
        if (!is_space(c)) begin_value(m, c);
        break;
    case MEMBER_TEXT:
        text_byte(m, c, out);
        break;
    case MEMBER_STRING:
        string_byte(m, c);
        break;
    case MEMBER_OTHER:
        other_byte(m, c);
        break;
    case MEMBER_END:
        break;
    }
}

void json_member_feed(json_member *m, cairn_str json, buf *out)
{
    for (size_t i = 0; i < json.len; i++) one_byte(m, json.ptr[i], out);
}
