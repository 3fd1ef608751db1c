/* Parts of a tokenizer.json that the format wants whole, for files that tests write; of two members with one
   name the later counts. */
#ifndef TESTS_TOK_JSON_H
#define TESTS_TOK_JSON_H

#define TOK_PLAIN                                                                                  \
    "\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":true,\"special\":"     \
    "false"
#define TOK_SPECIAL    TOK_PLAIN ",\"normalized\":false,\"special\":true"
#define TOK_BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true}"

#endif
