/* JSON read byte by byte, without building anything: where a value ends and whether it is one. */
#ifndef TEXT_TOOL_SCAN_H
#define TEXT_TOOL_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum scan_result {
    SCAN_MORE,
    SCAN_DONE,  /* this byte was the value's last */
    SCAN_AFTER, /* the value ended before this byte (numbers and words), which was not taken */
    SCAN_BAD
} scan_result;

typedef struct scan {
    uint8_t state;
    uint8_t n_word; /* of a word or number */
    uint16_t depth;
    uint64_t is_object[2]; /* a bit a level: CAIRN_REPLY_MAX_DEPTH */
    char word[40];         /* longer numbers are checked in their first bytes' grammar alone */
} scan;

void scan_init(scan *s);
bool scan_fresh(const scan *s); /* no byte but white space came yet */
bool scan_in_string(const scan *s);
bool scan_in_plain(const scan *s); /* in one, and in no escape */
/* Control characters in strings are taken, though JSON has them escaped: the caller escapes them. */
scan_result scan_feed(scan *s, char c);

bool scan_is_space(char c);
bool scan_is_number(const char *p, size_t n);
/* Appends what stands for byte c inside a JSON string; answers the length, at most 6. */
size_t scan_escape(char c, char out[6]);

#endif
