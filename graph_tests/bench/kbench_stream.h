/* The stream loops of a level, out of what the including file defines: VEC, LINE_VECS (of a cache line), LOAD(p), STORE(p, v),
 * STREAM(p, v), OR(a, b), ZERO, KEEP(v) (the value is used). */
#include "kbench_limit.h"
#include "kernels/simd/unroll.h"

/* Four lines of each at a time, so that the loop itself costs nothing. */
QK_INLINE void stream(const char *src, char *dst, size_t n, size_t reads, size_t writes, bool past_caches) {
    enum { BYTES = 64 / LINE_VECS };
    VEC sum[4] = {ZERO, ZERO, ZERO, ZERO};
    for (size_t i = 0; i < n; i += 4) {
        for (size_t r = 0; r < reads * LINE_VECS; r++, src += 4 * BYTES)
            QK_FOUR_TIMES(k, sum[k] = OR(sum[k], LOAD(src + k * BYTES)));
        for (size_t w = 0; w < writes * LINE_VECS; w++, dst += 4 * BYTES)
            if (past_caches)
                QK_FOUR_TIMES(k, STREAM(dst + k * BYTES, sum[k]));
            else
                QK_FOUR_TIMES(k, STORE(dst + k * BYTES, sum[k]));
    }
    QK_FOUR_TIMES(k, KEEP(sum[k]));
}

#define KBENCH_MIX(reads, writes)                                                                                      \
    static void plain_##reads##_##writes(const char *src, char *dst, size_t n) {                                       \
        stream(src, dst, n, reads, writes, false);                                                                     \
    }                                                                                                                  \
    static void streaming_##reads##_##writes(const char *src, char *dst, size_t n) {                                   \
        stream(src, dst, n, reads, writes, true);                                                                      \
    }
KBENCH_MIXES
#undef KBENCH_MIX

#define KBENCH_MIX(reads, writes) {reads, writes, plain_##reads##_##writes, streaming_##reads##_##writes},
