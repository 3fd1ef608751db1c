/* Literals at their byte: comparing what came with a state's arms, and going where one leads.  The
   longest arm wins; bytes read beyond it are read again. */
#include "base/str.h"
#include "text/reply_priv.h"

static bool enabled(const reply *r, const tool_arm *a)
{
    if (!a->lit[0]) return false;
    if ((a->flags & ARM_AT) && !r->at_start) return false;
    return !(a->flags & ARM_SP) || !r->marks_special || r->special;
}

/* The longest arm that is a whole prefix of `pend`; *part: some arm may still come. */
static const tool_arm *compare(const reply *r, const tool_state *s, bool *part)
{
    const tool_arm *best = NULL;
    size_t best_len = 0;
    *part = false;
    for (const tool_arm *a = s->arm; a->lit; a++) {
        const size_t n = strlen(a->lit), m = n < r->n_pend ? n : r->n_pend;
        if (!enabled(r, a) || memcmp(a->lit, r->pend, m) != 0) continue;
        if (n > r->n_pend)
            *part = true;
        else if (n > best_len) {
            best = a;
            best_len = n;
        }
    }
    return best;
}

static void cut_pend(reply *r, size_t keep)
{
    reply_unread(r, r->pend + keep, r->n_pend - keep);
    r->n_pend = 0;
}

char reply_first(reply *r)
{
    const char first = r->pend[0];
    cut_pend(r, 1);
    return first;
}

reply_match reply_match_byte(reply *r, const tool_state *s, char c, const tool_arm **arm)
{
    bool part;
    r->pend[r->n_pend++] = c;
    *arm = NULL;
    if (r->n_pend == 1 && !tool_starts_arm(s, c)) return MATCH_NONE;
    *arm = compare(r, s, &part);
    if (part) return MATCH_PART;
    if (!*arm) return MATCH_NONE;
    cut_pend(r, strlen((*arm)->lit));
    return MATCH_FULL;
}

const tool_arm *reply_match_end(reply *r, const tool_state *s)
{
    bool part;
    const tool_arm *arm = r->n_pend ? compare(r, s, &part) : NULL;
    if (arm) cut_pend(r, strlen(arm->lit));
    return arm;
}

/* From here on it may be a call: bytes are held until that is sure. */
static void hold(reply *r)
{
    r->holding = true;
    r->home = tool_is_text(reply_state(r)) ? r->state : r->fam->answer;
    r->held_lead = r->n_space;
    buf_put(&r->held, r->space, r->n_space);
    r->n_space = 0;
}

void reply_take_arm(reply *r, const tool_arm *arm)
{
    const bool to_text = tool_is_text(&r->fam->state[arm->to]);
    const size_t n = strlen(arm->lit);
    if (!r->begun && !r->holding && !to_text && !(arm->flags & ARM_OK)) hold(r);
    reply_took(r, r->space, r->n_space);
    r->n_space = 0;
    if (arm->flags & ARM_KEEP)
        reply_unread(r, arm->lit, n);
    else
        reply_took(r, arm->lit, n);
    if (((arm->flags & ARM_BEGIN) && !reply_begin(r)) ||
        ((arm->flags & ARM_END) && !reply_end(r, CAIRN_CALL_DONE))) {
        reply_fail(r, NULL, 0);
        return;
    }
    if (arm->flags & ARM_OK) reply_commit(r);
    reply_enter(r, arm->to);
}
