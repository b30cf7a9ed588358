/* The stream loops of a level, out of what the including file defines: VEC, LINE_VECS (of a cache line), LOAD(p), STORE(p, v),
 * STREAM(p, v), OR(a, b), ZERO, KEEP(v) (the value is used). */
#include "kbench_limit.h"
#include "kernels/simd/unroll.h"

/* Lines are read and written in turn, as a kernel does. */
QK_INLINE void stream(const char *src, char *dst, size_t n, size_t reads, size_t writes, bool past_caches) {
    enum { BYTES = 64 / LINE_VECS };
    VEC sum[4] = {ZERO, ZERO, ZERO, ZERO};
    for (size_t i = 0; i < n; i++) {
        for (size_t v = 0; v < LINE_VECS; v++, src += BYTES) {
            if (reads > 0) sum[0] = OR(sum[0], LOAD(src));
            if (reads > 1) sum[1] = OR(sum[1], LOAD(src + 64));
            if (reads > 2) sum[2] = OR(sum[2], LOAD(src + 2 * 64));
            if (reads > 3) sum[3] = OR(sum[3], LOAD(src + 3 * 64));
            for (size_t r = 4; r < reads; r++)
                sum[0] = OR(sum[0], LOAD(src + r * 64));
        }
        for (size_t w = 0; w < writes * LINE_VECS; w++, dst += BYTES)
            if (past_caches)
                STREAM(dst, sum[0]);
            else
                STORE(dst, sum[0]);
        if (reads > 0) src += (reads - 1) * 64;
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
