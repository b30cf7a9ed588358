/* The vector levels of the family, written once for both widths. */
#include "kernels/affine/affine_row.h"
#include "kernels/simd/wide.h"

#include <string.h>

enum { LANES = QKW_LANES, BLOCK = 4 * LANES };

/* Four registers of elements to bytes. The last packing puts each 128-bit lane's bytes together; an order is made of them at once. */
QK_INLINE void run_block(const qk_affine *a, const float *factor, const float *shift, bool vectors, const char *src,
                         char *dst, bool from_signed, bool to_signed) {
    qkw_i q[4];
    const qkw_f top =
        QKW(set1_ps)(0x1p30f); /* from 2^31 on the conversion would give the least integer, as below -2^31 */
    QK_FOUR_TIMES(k, qkw_f f = vectors ? QKW(loadu_ps)(factor + LANES * k) : QKW(set1_ps)(*factor);
                  qkw_f s = vectors ? QKW(loadu_ps)(shift + LANES * k) : QKW(set1_ps)(*shift);
                  qkw_f x = QKW(cvtepi32_ps)(QKX(load8)(src + LANES * k, from_signed));
                  q[k] = QKW(cvtps_epi32)(QKW(min_ps)(QKW(fmadd_ps)(x, f, s), top)));
    const qkw_i zp = QKW(set1_epi16)((short)a->zp);
    qkw_i words[2] = {QKW(adds_epi16)(QKW(packs_epi32)(q[0], q[1]), zp),
                      QKW(adds_epi16)(QKW(packs_epi32)(q[2], q[3]), zp)};
    const qkw_i low = QKW(set1_epi8)((char)a->low), high = QKW(set1_epi8)((char)a->high);
    qkw_i bytes = to_signed ? QKW(packs_epi16)(words[0], words[1]) : QKW(packus_epi16)(words[0], words[1]);
    bytes = to_signed ? QKW(min_epi8)(QKW(max_epi8)(bytes, low), high) : QKW(min_epu8)(QKW(max_epu8)(bytes, low), high);
    qkw_store(dst, QKX(order8)(bytes));
}

QK_INLINE void run_all(const qk_affine *a, const float *factor, const float *shift, bool vectors, const char *src,
                       char *dst, size_t n, bool from_signed, bool to_signed) {
    size_t i = 0;
    for (; n - i >= BLOCK; i += BLOCK)
        run_block(a, factor + (vectors ? i : 0), shift + (vectors ? i : 0), vectors, src + i, dst + i, from_signed,
                  to_signed);
    if (i == n) return;
    float f[BLOCK] = {0}, s[BLOCK] = {0};
    char in[BLOCK] = {0}, out[BLOCK];
    memcpy(in, src + i, n - i);
    if (vectors) memcpy(f, factor + i, (n - i) * sizeof *f);
    if (vectors) memcpy(s, shift + i, (n - i) * sizeof *s);
    run_block(a, vectors ? f : factor, vectors ? s : shift, vectors, in, out, from_signed, to_signed);
    memcpy(dst + i, out, n - i);
}

static void run(const qk_affine *a, const float *factor, const float *shift, size_t step, const void *src, void *dst,
                size_t n) {
#define OF(from, to)                                                                                                   \
    step ? run_all(a, factor, shift, true, src, dst, n, from, to)                                                      \
         : run_all(a, factor, shift, false, src, dst, n, from, to)
    if (a->src == QDQ_DTYPE_S8)
        a->dst == QDQ_DTYPE_S8 ? (OF(true, true)) : (OF(true, false));
    else
        a->dst == QDQ_DTYPE_S8 ? (OF(false, true)) : (OF(false, false));
#undef OF
}
