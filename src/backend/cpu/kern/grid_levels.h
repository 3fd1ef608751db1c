/* What codes of the codebook and ternary types stand for, times the power of two that makes them whole, by
   their place in a tile's index: 16 of nibbles; 8 of two bits, the second four where a weight's high bit
   is set.  GRID_LIST: name, bits by which d goes down, its levels. */
#ifndef KERN_GRID_LEVELS_H
#define KERN_GRID_LEVELS_H

#define GRID_LIST(X)                                                                               \
    X(IQ3_S, 0, 1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15)                      \
    X(IQ3_XXS, 1, 2, 6, 10, 14, 18, 22, 26, 31, -2, -6, -10, -14, -18, -22, -26, -31)              \
    X(IQ2_XXS, 3, 8, 25, 43, 0, -8, -25, -43, 0, 8, 25, 43, 0, -8, -25, -43, 0)                    \
    X(IQ2_S, 3, 8, 25, 43, 0, -8, -25, -43, 0, 8, 25, 43, 0, -8, -25, -43, 0)                      \
    X(IQ1_S, 3, -7, 1, 9, 0, -9, -1, 7, 0, -7, 1, 9, 0, -9, -1, 7, 0)                              \
    X(IQ1_M, 3, -7, 1, 9, 0, -9, -1, 7, 0, -7, 1, 9, 0, -9, -1, 7, 0)                              \
    X(TQ, 0, -1, 0, 1, 2, -1, 0, 1, 2, -1, 0, 1, 2, -1, 0, 1, 2)

#endif
