/* Blocks of Anthropic's messages that are texts wherever they stand: documents, results of searches, names of tools; and
   what every block has.  One that is no text is refused with its path. */
#include "serve/anthropic_texts.h"

#include "base/diag.h"
#include "base/str.h"
#include "serve/body_fields.h"
#include "serve/openai_messages.h"

cairn_status anthropic_want(chat_fault *f, body_path p, const char *what, json_val v)
{
    return chat_want(f, p.s, what, v);
}

cairn_status anthropic_want_str(chat_fault *f, json_val v, body_path p, const char *key,
                                cairn_str *out)
{
    const json_val s = json_get(v, key);

    *out = json_str(s);
    return json_typeof(s) == JSON_STR ? CAIRN_OK
                                      : anthropic_want(f, path_key(p, key), "a string", s);
}

cairn_status anthropic_want_name(chat_fault *f, json_val v, body_path p, const char *key,
                                 cairn_str *out)
{
    TRY(anthropic_want_str(f, v, p, key, out));
    return out->len ? CAIRN_OK
                    : anthropic_want(f, path_key(p, key), "a string, not empty", json_get(v, key));
}

cairn_status anthropic_no_such_block(chat_fault *f, body_path p, cairn_str type)
{
    const bool seen = str_is(type, "image");

    return chat_fault_set(f, CAIRN_E_UNSUPPORTED, p.s,
                          "`%s` is a block of type `%.*s`, which is not supported here%s", p.s,
                          STR_ARG(type), seen ? ": the model reads text alone" : "");
}

/* Every prompt is cached, so it says nothing; but it has to be what the API has. */
cairn_status anthropic_cache_check(json_val of, body_path p, chat_fault *f)
{
    static const body_field fields[] = {
        BODY_FIELD(NULL, "cache_control", FIELD_OBJECT),
        BODY_WORD("cache_control", "type", "ephemeral ", "ephemeral"),
        BODY_WORD("cache_control", "ttl", "5m 1h ", "5m or 1h"),
    };
    const json_val v = json_get(of, "cache_control"), type = json_get(v, "type");

    TRY(BODY_FIELDS_CHECK(of, p, fields, f));
    if (json_typeof(v) <= JSON_NULL || json_typeof(type) == JSON_STR) return CAIRN_OK;
    return chat_want(f, path_key(path_key(p, "cache_control"), "type").s, "ephemeral", type);
}

/* The block's type; no string is a fault. */
cairn_status anthropic_block_type(chat_fault *f, json_val block, body_path p, cairn_str *type)
{
    if (json_typeof(block) != JSON_OBJ) return anthropic_want(f, p, "an object", block);
    TRY(anthropic_cache_check(block, p, f));
    return anthropic_want_name(f, block, p, "type", type);
}

/* The member, a string if it is there, as a line. */
cairn_status anthropic_put_line(chat_fault *f, json_val v, body_path p, const char *key, buf *out)
{
    cairn_str text = {0};

    if (json_typeof(json_get(v, key)) <= JSON_NULL) return CAIRN_OK;
    TRY(anthropic_want_str(f, v, p, key, &text));
    buf_str(out, text);
    buf_byte(out, '\n');
    return CAIRN_OK;
}

/* Texts alone, of a document or a result of a search: each a string or an object of type text. */
cairn_status anthropic_put_texts(chat_fault *f, json_val v, body_path p, buf *out)
{
    json_iter it = json_each(v);
    cairn_str type = {0}, text = {0};
    json_val block;

    if (json_typeof(v) == JSON_STR) buf_str(out, json_str(v));
    if (json_typeof(v) == JSON_STR) return CAIRN_OK;
    if (json_typeof(v) != JSON_ARR)
        return anthropic_want(f, p, "a string or an array of blocks", v);
    for (size_t i = 0; json_next(&it, &block); i++) {
        const body_path at = path_number(p, i);
        TRY(anthropic_block_type(f, block, at, &type));
        if (!str_is(type, "text")) return anthropic_no_such_block(f, at, type);
        TRY(anthropic_want_str(f, block, at, "text", &text));
        if (i > 0) buf_byte(out, '\n');
        buf_str(out, text);
    }
    return CAIRN_OK;
}

/* Title and context, then the text; other sources are no text, or not here. */
static cairn_status put_document(chat_fault *f, json_val block, body_path p, buf *out)
{
    const json_val source = json_get(block, "source");
    const body_path at = path_key(p, "source");
    const cairn_str type = json_str(json_get(source, "type"));
    cairn_str data = {0};

    if (json_typeof(source) != JSON_OBJ) return anthropic_want(f, at, "an object", source);
    TRY(anthropic_put_line(f, block, p, "title", out));
    TRY(anthropic_put_line(f, block, p, "context", out));
    if (str_is(type, "content"))
        return anthropic_put_texts(f, json_get(source, "content"), path_key(at, "content"), out);
    if (str_is(type, "text")) {
        TRY(anthropic_want_str(f, source, at, "data", &data));
        buf_str(out, data);
        return CAIRN_OK;
    }
    if (type.len == 0)
        return anthropic_want(f, path_key(at, "type"), "a type of source",
                              json_get(source, "type"));
    return chat_fault_set(f, CAIRN_E_UNSUPPORTED, at.s,
                          "`%s` is of type `%.*s`, which is not supported here: the model reads "
                          "text alone",
                          at.s, STR_ARG(type));
}

static cairn_status put_search_result(chat_fault *f, json_val block, body_path p, buf *out)
{
    TRY(anthropic_put_line(f, block, p, "title", out));
    TRY(anthropic_put_line(f, block, p, "source", out));
    return anthropic_put_texts(f, json_get(block, "content"), path_key(p, "content"), out);
}

static cairn_status put_text(chat_fault *f, json_val block, body_path p, buf *out)
{
    cairn_str text = {0};

    TRY(anthropic_want_str(f, block, p, "text", &text));
    buf_str(out, text);
    return CAIRN_OK;
}

static cairn_status put_reference(chat_fault *f, json_val block, body_path p, buf *out)
{
    cairn_str name = {0};

    TRY(anthropic_want_name(f, block, p, "tool_name", &name));
    buf_str(out, name);
    return CAIRN_OK;
}

/* Blocks that are a text, wherever they stand. */
static const struct {
    const char *type;
    cairn_status (*put)(chat_fault *f, json_val block, body_path p, buf *out);
} texts[] = {
    {"text", put_text},
    {"document", put_document},
    {"search_result", put_search_result},
    {"tool_reference", put_reference},
};

cairn_status anthropic_put_block(chat_fault *f, json_val block, body_path p, buf *out)
{
    cairn_str type = {0};

    TRY(anthropic_block_type(f, block, p, &type));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (str_is(type, texts[i].type)) return texts[i].put(f, block, p, out);
    return anthropic_no_such_block(f, p, type);
}

/* A string, or an array of blocks that are texts, joined by newlines into out. */
cairn_status anthropic_put_content(chat_fault *f, json_val v, body_path p, buf *out)
{
    json_iter it = json_each(v);
    json_val block;

    if (json_typeof(v) == JSON_STR) buf_str(out, json_str(v));
    if (json_typeof(v) == JSON_STR) return CAIRN_OK;
    if (json_typeof(v) != JSON_ARR)
        return anthropic_want(f, p, "a string or an array of blocks", v);
    for (size_t i = 0; json_next(&it, &block); i++) {
        if (i > 0) buf_byte(out, '\n');
        TRY(anthropic_put_block(f, block, path_number(p, i), out));
    }
    return CAIRN_OK;
}
