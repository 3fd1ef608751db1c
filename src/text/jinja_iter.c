/* Iteration over every kind of value that Python can iterate, and generators: lazy filters that are
   consumed once. */
#include "text/jinja_run.h"

bool jv_can_iter(jv v)
{
    switch (v.t) {
    case J_UNDEF:
    case J_STR:
    case J_LIST:
    case J_TUPLE:
    case J_VIEW:
    case J_DICT:
    case J_RANGE:
    case J_ITER:
    case J_LOOP:
        return true;
    default:
        return false;
    }
}

bool jiter_init(jrun *r, jv v, jiter *it)
{
    *it = (jiter){.src = v};
    switch (v.t) {
    case J_UNDEF:
        it->kind = IT_END;
        return true;
    case J_STR:
        it->kind = IT_STR;
        return true;
    case J_LIST:
    case J_TUPLE:
    case J_VIEW:
        it->kind = IT_SEQ;
        return true;
    case J_DICT:
        it->kind = IT_DICT;
        return true;
    case J_RANGE:
        it->kind = IT_RANGE;
        return true;
    case J_ITER:
        it->kind = IT_FORWARD;
        it->in = v.u.iter;
        return true;
    case J_LOOP:
        it->kind = IT_LOOP;
        return true;
    default:
        return jfail(r, "'%s' object is not iterable; expected a list, a mapping or a string",
                     jv_type_name(v));
    }
}

static bool char_at(const jiter *it, jv *out)
{
    cairn_str s = jv_text(it->src);
    size_t n = 1;
    while (it->pos + n < s.len && ((unsigned char)s.ptr[it->pos + n] & 0xc0) == 0x80) n++;
    *out = jv_str(str_sub(s, it->pos, n));
    return true;
}

/* From the end; `pos` counts what has been given. */
static int reverse_next(jiter *it, jv *out)
{
    size_t i = it->pos++;
    switch (it->src.t) {
    case J_DICT:
        if (i >= it->src.u.dict->n) return 0;
        *out = it->src.u.dict->kv[it->src.u.dict->n - 1 - i].k;
        return 1;
    case J_RANGE:
        if ((int64_t)i >= it->src.u.range->n) return 0;
        *out = jv_int(it->src.u.range->start +
                      it->src.u.range->step * (it->src.u.range->n - 1 - (int64_t)i));
        return 1;
    default:
        if (!jv_is_seq(it->src) || i >= it->src.u.list->n) return 0;
        *out = it->src.u.list->v[it->src.u.list->n - 1 - i];
        return 1;
    }
}

/* A generator tells its argument errors when it is first pulled, so `step` sees set_up false then,
   with J_MISSING as the item. */
static int gen_next(jrun *r, jiter *it, jv *out)
{
    jv item;
    int got;

    if (!it->set_up) {
        it->set_up = true;
        if (it->step(r, it, jv_of(J_MISSING), out) < 0) return -1;
        if (it->done) return 0;
    }
    for (;;) {
        got = jiter_next(r, it->in, &item);
        if (got <= 0) return got;
        got = it->step(r, it, item, out);
        if (got) return got;
    }
}

static int next_of(jrun *r, jiter *it, jv *out)
{
    switch (it->kind) {
    case IT_SEQ:
        if (it->pos >= it->src.u.list->n) return 0;
        *out = it->src.u.list->v[it->pos++];
        return 1;
    case IT_STR:
        if (it->pos >= it->src.len) return 0;
        char_at(it, out);
        it->pos += out->len;
        return 1;
    case IT_DICT:
        if (it->pos >= it->src.u.dict->n) return 0;
        *out = it->src.u.dict->kv[it->pos++].k;
        return 1;
    case IT_RANGE:
        if ((int64_t)it->pos >= it->src.u.range->n) return 0;
        *out = jv_int(it->src.u.range->start + it->src.u.range->step * (int64_t)it->pos++);
        return 1;
    case IT_REVERSE:
        return reverse_next(it, out);
    case IT_FORWARD:
        return jiter_next(r, it->in, out);
    case IT_LOOP:
        return jloop_next(r, it->src.u.loop, out);
    case IT_LATER:
        if (!it->set_up && !it->fn->fn(r, it->src, it->call.pos, &it->key)) return -1;
        it->set_up = true;
        return jiter_next(r, it->key.u.iter, out);
    case IT_BAD:
        jfail(r, "'%s' object is not iterable; expected a list, a mapping or a string",
              jv_type_name(it->src));
        return -1;
    case IT_GEN:
        return gen_next(r, it, out);
    default:
        return 0;
    }
}

int jiter_next(jrun *r, jiter *it, jv *out)
{
    if (it->done) return 0;
    if (!jsteps(r, 1) || !jenter(r)) return -1;
    int got = next_of(r, it, out);
    r->depth--;
    if (got <= 0) it->done = true;
    return got;
}

bool jv_to_list(jrun *r, jv v, uint8_t t, jv *out)
{
    jiter it;
    jv list, x;
    uint32_t cap = 0;
    int got;

    if (jv_is_seq(v)) { /* lists never change: the elements can be shared */
        if (!jv_new_list(r, t, 0, &list)) return false;
        *list.u.list = *v.u.list;
        *out = list;
        return true;
    }
    if (!jiter_init(r, v, &it) || !jv_new_list(r, t, 0, &list)) return false;
    while ((got = jiter_next(r, &it, &x)) > 0)
        if (!jlist_push(r, &list, &cap, x)) return false;
    *out = list;
    return got == 0;
}

bool jv_generator(jrun *r, jv src, const jiter *like, jv *out)
{
    jiter *it = jalloc(r, 2 * sizeof *it);
    if (!it) return false;
    *it = *like;
    it->in = it + 1;
    if (!jv_can_iter(src))
        *it->in = (jiter){.kind = IT_BAD, .src = src};
    else if (!jiter_init(r, src, it->in))
        return false;
    *out = (jv){.t = J_ITER, .u.iter = it};
    return true;
}
