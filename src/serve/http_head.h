/* The head of an HTTP/1.x request, and the framing of a chunked body, read strictly.  No I/O and no
   memory of its own: bytes in, findings out. */
#ifndef SERVE_HTTP_HEAD_H
#define SERVE_HTTP_HEAD_H

#include "cairn/status.h"

enum {
    HEAD_MAX_BYTES = 32768, /* request line and headers; over it: 414 or 431 */
    HEAD_MAX_FIELDS = 100   /* header lines; agents send some 20.  Over it: 431 */
};

typedef struct head_field { /* both NUL-terminated, at these offsets of the head's bytes */
    uint32_t name, value;
} head_field;

/* Zeroed to begin with.  What points into the head's bytes is an offset, as they may move. */
typedef struct http_head {
    uint32_t at;   /* bytes looked at */
    uint32_t line; /* where the line at hand begins */
    uint32_t len;  /* of the whole head, once it is complete */
    char method[16];
    uint32_t path;  /* NUL-terminated, percent-decoded, without the query */
    uint32_t query; /* likewise, but as it was sent; 0: there is none */
    head_field field[HEAD_MAX_FIELDS];
    int32_t n_field;
    bool begun;   /* the request line is in */
    bool old;     /* HTTP/1.0 */
    bool close;   /* no other request comes on this connection */
    bool chunked; /* the body is */
    bool has_length;
    bool expects;    /* the client waits for 100 Continue */
    uint64_t length; /* of the body, if not chunked; UINT64_MAX: more than 64 bits hold */
    int32_t status;  /* of what was refused, and why */
    const char *why;
} http_head;

typedef enum head_result { HEAD_MORE, HEAD_DONE, HEAD_REFUSED } head_result;

/* Looks at the bytes that came since the last call: `p` holds all n since the head began.  Writes NULs
   into lines that are complete.  A fault is found as soon as its line, and a control byte as soon as
   it, is there. */
head_result http_head_feed(http_head *h, char *p, size_t n);
/* The first value of that name (any case), in the bytes that were fed; NULL if there is none. */
const char *http_head_find(const http_head *h, const char *p, const char *name);

typedef enum chunk_state {
    CHUNK_SIZE,
    CHUNK_EXT,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    CHUNK_TRAILER, /* at the beginning of a line */
    CHUNK_TRAILER_LINE,
    CHUNK_TRAILER_LF,
    CHUNK_LAST_LF,
    CHUNK_END,
    CHUNK_BAD
} chunk_state;

typedef struct http_chunks { /* zeroed to begin with */
    chunk_state state;
    uint64_t left;     /* of the size being read, then of the data */
    uint32_t n_digits; /* of this size */
    uint32_t n_ext;    /* bytes of this chunk's extension, or of all trailers */
} http_chunks;

/* Takes up to n bytes: at most one run of data (*data, maybe empty).  How many were used; fewer than n
   only before the next run, after the end (CHUNK_END) or at a fault (CHUNK_BAD). */
size_t http_chunks_feed(http_chunks *k, const char *p, size_t n, cairn_str *data);

#endif
