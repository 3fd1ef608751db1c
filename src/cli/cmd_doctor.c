/* doctor: what is wrong or old in a model's text files, one line a finding. */
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/json.h"
#include "base/str.h"
#include "cairn/doctor.h"
#include "cli/cli.h"

static void put_lines(const cairn_doctor *d, buf *b)
{
    for (size_t i = 0; i < cairn_doctor_count(d); i++) {
        const cairn_finding f = cairn_doctor_at(d, i);
        buf_printf(b, "%s: %s: %s\n", f.bad ? "bad" : "note", f.code, f.message);
    }
    if (!cairn_doctor_count(d)) buf_puts(b, "nothing to say\n");
}

static void put_json(const cairn_doctor *d, const char *model, size_t bad, buf *b)
{
    json_writer w = json_write(b);
    json_w_obj(&w);
    json_w_kstr(&w, "model", str_of(model));
    json_w_kuint(&w, "bad", bad);
    json_w_key(&w, "findings");
    json_w_arr(&w);
    for (size_t i = 0; i < cairn_doctor_count(d); i++) {
        const cairn_finding f = cairn_doctor_at(d, i);
        json_w_obj(&w);
        json_w_kstr(&w, "level", str_of(f.bad ? "bad" : "note"));
        json_w_kstr(&w, "code", str_of(f.code));
        json_w_kstr(&w, "message", str_of(f.message));
        json_w_end_obj(&w);
    }
    json_w_end_arr(&w);
    json_w_end_obj(&w);
    buf_byte(b, '\n');
}

int cmd_doctor(const command *c, int argc, char **argv)
{
    bool json = false;
    const flag table[] = {
        {"--json", NULL, FLAG_BOOL, &json, "one object with an array of findings", 0, 0, NULL},
    };
    cli_words words;
    int code;
    if (!cli_flags(c, table, sizeof table / sizeof table[0], argc, argv, 1, 1, &words, &code))
        return code;

    cairn_diag dg = {0};
    cairn_doctor *d = NULL;
    cairn_status st;
    size_t bad = 0;
    cairn_bytes path = {0};
    buf b;
    buf_init(&b, MEM_MISC);
    TRY_GOTO(cairn_model_resolve(words.word[0], &path, &dg), out);
    TRY_GOTO(cairn_doctor_run(path.ptr, &d, &dg), out);
    for (size_t i = 0; i < cairn_doctor_count(d); i++) bad += cairn_doctor_at(d, i).bad;
    if (json)
        put_json(d, words.word[0], bad, &b);
    else
        put_lines(d, &b);
    st = cli_print(&b, &dg);
out:
    cairn_doctor_free(d);
    buf_deinit(&b);
    cairn_bytes_free(&path);
    if (st != CAIRN_OK) return cli_failed(&dg);
    return bad ? EXIT_FAILED : EXIT_OK;
}
