/* Who uses a model.  A request holds a reference to it from the moment its name is read to its last byte, and each
   generation holds one until the engine is done with it, so that no model is closed in use. */
#include <assert.h>

#include "base/clock.h"
#include "serve/models_priv.h"

uint64_t models_now_ms(void)
{
    return clock_ns() / 1000000;
}

void served_model_hold(const served_model *m)
{
    model_slot *s = m->slot;

    mutex_lock(&s->table->mu);
    assert(s->refs > 0);
    s->refs++;
    mutex_unlock(&s->table->mu);
}

static void end_ref(const served_model *m, bool used)
{
    model_slot *s = m->slot;
    model_table *t = s->table;

    mutex_lock(&t->mu);
    assert(s->refs > 0);
    s->refs--;
    if (used) model_used(s, models_now_ms());
    /* Inside the lock: after it, the server may be gone. */
    if (s->refs == 0 && !s->stays && !t->closing) t->notify(t->ctx);
    mutex_unlock(&t->mu);
}

void served_model_let_go(const served_model *m)
{
    if (m) end_ref(m, true);
}

void served_model_look_away(const served_model *m)
{
    if (m) end_ref(m, false);
}
