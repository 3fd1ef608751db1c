/* Seeds and names that nothing else has.  Names need not be secret. */
#ifndef SERVE_RANDOM_H
#define SERVE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

uint64_t random_seed(void);
/* `prefix`, then so many hexadecimal digits, as far as `size` goes. */
void random_name(char *out, size_t size, const char *prefix, size_t n_digits);

#endif
