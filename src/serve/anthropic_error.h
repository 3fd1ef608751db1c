/* Errors in Anthropic's shape. */
#ifndef SERVE_ANTHROPIC_ERROR_H
#define SERVE_ANTHROPIC_ERROR_H

#include "serve/http.h"

/* As answer_format has them. */
void anthropic_refuse(http_req *rq, int status, const char *param, const char *code,
                      const char *message);
void anthropic_put_fail(void *out, int status, const char *code, cairn_str message, buf *frames);

#endif
