/* The columns of a line under a window of three, by COLUMN(what is added of the next one), ADD(s, t) and END(s) (which breaks at the
 * last output) of conv_dw_*.c: with the first output's first two taps in the sums a, and where outputs move by one the next's first in
 * b. Every column goes to the outputs that see it. */

/* A column is the third of one output, the second of the next, the first of the one after. */
#define STEP(third, second, first)                                                                                     \
    COLUMN(ADD(third, 2) ADD(second, 1) ADD(first, 0))                                                                 \
    END(third)
#define COLUMNS(stride)                                                                                                \
    COLUMN(ADD(a, 0))                                                                                                  \
    if (stride == 1) {                                                                                                 \
        COLUMN(ADD(a, 1) ADD(b, 0))                                                                                    \
    } else {                                                                                                           \
        COLUMN(ADD(a, 1))                                                                                              \
    }                                                                                                                  \
    while (stride == 1) {                                                                                              \
        STEP(a, b, c)                                                                                                  \
        STEP(b, c, a)                                                                                                  \
        STEP(c, a, b)                                                                                                  \
    }                                                                                                                  \
    while (stride == 2) {                                                                                              \
        COLUMN(ADD(a, 2) ADD(b, 0))                                                                                    \
        END(a)                                                                                                         \
        COLUMN(ADD(b, 1))                                                                                              \
        COLUMN(ADD(b, 2) ADD(a, 0))                                                                                    \
        END(b)                                                                                                         \
        COLUMN(ADD(a, 1))                                                                                              \
    }
