/* Four times the same statement. Loops over arrays of registers stay loops over memory at -O2; constant indices do not. */
#ifndef QK_SIMD_UNROLL_H
#define QK_SIMD_UNROLL_H

#define QK_INLINE static inline __attribute__((always_inline))

/* `k` is the name of the constant 0, 1, 2, 3 in the statement. */
#define QK_FOUR_TIMES(k, ...)                                                                                          \
    do {                                                                                                               \
        {                                                                                                              \
            enum { k = 0 };                                                                                            \
            __VA_ARGS__;                                                                                               \
        }                                                                                                              \
        {                                                                                                              \
            enum { k = 1 };                                                                                            \
            __VA_ARGS__;                                                                                               \
        }                                                                                                              \
        {                                                                                                              \
            enum { k = 2 };                                                                                            \
            __VA_ARGS__;                                                                                               \
        }                                                                                                              \
        {                                                                                                              \
            enum { k = 3 };                                                                                            \
            __VA_ARGS__;                                                                                               \
        }                                                                                                              \
    } while (0)

/* Six times likewise: 0 … 5. */
#define QK_SIX_TIMES(k, ...)                                                                                           \
    do {                                                                                                               \
        QK_FOUR_TIMES(k, __VA_ARGS__);                                                                                 \
        {                                                                                                              \
            enum { k = 4 };                                                                                            \
            __VA_ARGS__;                                                                                               \
        }                                                                                                              \
        {                                                                                                              \
            enum { k = 5 };                                                                                            \
            __VA_ARGS__;                                                                                               \
        }                                                                                                              \
    } while (0)

#endif
