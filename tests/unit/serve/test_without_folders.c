/* No folder of this machine in what a client is told, wherever the message names a file. */
#include "test.h"

#include "serve/without_folders.h"

static const struct {
    const char *message, *told;
} cases[] = {
    {"/srv/models/x.gguf: 3 bytes; expected 24", "x.gguf: 3 bytes; expected 24"},
    {"models/my model.gguf: too short", "my model.gguf: too short"},
    {"/srv/my models/x/t.jinja, line 3: no filter 'a/b'", "t.jinja, line 3: no filter 'a/b'"},
    {"1 of 3 parts missing; expected /srv/models/x-00002-of-00003.gguf",
     "1 of 3 parts missing; expected x-00002-of-00003.gguf"},
    {"2 of 3 parts missing; expected /srv/a-1.gguf, /srv/a-2.gguf and 4 more",
     "2 of 3 parts missing; expected a-1.gguf, a-2.gguf and 4 more"},
    {"/srv/m/a: tensor w is missing; expected beside /srv/m/b",
     "a: tensor w is missing; expected beside b"},
    {"a: not in \"/srv/m/b\" ('/srv/m/c'), nor in=/srv/m/d", "a: not in \"b\" ('c'), nor in=d"},
    {"a: \"/srv/my models/b\"", "a: \"my models/b\""},
    {"found ../m/a, ./b, ../../c and .../d", "found a, b, c and .../d"},
    {"cannot open /srv/models/", "cannot open "},
    /* what is no path stays */
    {"expected user/assistant", "expected user/assistant"},
    {"say /think or /no_think", "say /think or /no_think"},
    {"a: </think> and <tool_call/> ; 3 / 4", "a: </think> and <tool_call/> ; 3 / 4"},
    {"org/model of a hub", "org/model of a hub"},
    {"", ""},
    {"/", "/"},
    {"x: //", "x: "},
};

static void folders_are_left_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(without_folders(cases[i].message), cases[i].told);
}

static void what_is_too_long_is_cut(void **state)
{
    char message[2000];

    (void)state;
    memset(message, 'x', sizeof message);
    message[sizeof message - 1] = '\0';
    assert_int_equal(strlen(without_folders(message)), sizeof(bare_message) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_left_out),
        cmocka_unit_test(what_is_too_long_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
