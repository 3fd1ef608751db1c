/* Renders a conversation with a chat template many times: what one render takes, JSON parsed or not.
   bench_render TEMPLATE.jinja CONTEXT.json [REPEATS]; bench/compare-render runs it beside jinja2. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "text/chat.h"

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    enum { MAX_REPEATS = 10000, MAX_FILE = 64 << 20 };
    static double ms[MAX_REPEATS], parse_ms[MAX_REPEATS];
    cairn_diag dg = {0};
    buf text, json, out;
    chat *c = NULL;
    int n = argc > 3 ? atoi(argv[3]) : 500;

    buf_init(&text, MEM_TEXT);
    buf_init(&json, MEM_TEXT);
    buf_init(&out, MEM_TEXT);
    if (argc < 3 || n < 1 || n > MAX_REPEATS) return 2;
    if (file_read(argv[1], MAX_FILE, &text, &dg) != CAIRN_OK ||
        file_read(argv[2], MAX_FILE, &json, &dg) != CAIRN_OK)
        goto failed;
    double t = clock_s();
    if (chat_open(buf_view(&text), STR_LIT("<s>"), STR_LIT("</s>"), (json_val){0}, argv[1], &c,
                  &dg) != CAIRN_OK)
        goto failed;
    const double compile_ms = 1e3 * (clock_s() - t);
    for (int i = 0; i < n; i++) {
        json_doc *d = NULL;
        const double from = clock_s();
        if (json_parse(buf_view(&json), &d, &dg) != CAIRN_OK) goto failed;
        const double mid = clock_s();
        const json_val root = json_root(d);
        buf_cut(&out, 0);
        const cairn_status st = chat_render(c, json_get(root, "messages"), json_get(root, "tools"),
                                            (json_val){0}, true, &out, &dg);
        parse_ms[i] = 1e3 * (mid - from);
        ms[i] = 1e3 * (clock_s() - mid);
        json_free(d);
        if (st != CAIRN_OK) goto failed;
    }
    qsort(ms, (size_t)n, sizeof ms[0], by_value);
    qsort(parse_ms, (size_t)n, sizeof parse_ms[0], by_value);
    printf("{\"compile_ms\": %.3f, \"parse_ms\": %.4f, \"render_ms\": %.4f, \"bytes\": %zu}\n",
           compile_ms, parse_ms[n / 2], ms[n / 2], out.len);
    chat_close(c);
    buf_deinit(&text);
    buf_deinit(&json);
    buf_deinit(&out);
    return 0;
failed:
    fprintf(stderr, "bench_render: %s\n", dg.message);
    return 1;
}
