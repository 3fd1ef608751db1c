/* The version of the arithmetic that docs/numerics.md states: whatever is kept and was computed under another
   one is not the same to the bit. */
#ifndef TENSOR_NUMERICS_H
#define TENSOR_NUMERICS_H

enum { NUMERICS_VERSION = 3 };

#endif
