/* The vector levels of the family, written once for both widths. */
#include "kernels/affine/affine_row.h"
#include "kernels/simd/wide.h"

#include <math.h>
#include <string.h>

enum { LANES = QKW_LANES, BLOCK = 4 * LANES };

/* What is the same for all elements, in registers: the compiler must think that bytes written could be it. */
typedef struct same {
    qkw_f factor, shift, top;
    qkw_i zp, low, high;
} same;

QK_INLINE same same_of(const qk_affine *a, const float *factor, const float *shift) {
    /* from 2^31 on the conversion would give the least integer, as below -2^31 */
    return (same){QKW(set1_ps)(*factor),         QKW(set1_ps)(*shift),         QKW(set1_ps)(0x1p30f),
                  QKW(set1_epi16)((short)a->zp), QKW(set1_epi8)((char)a->low), QKW(set1_epi8)((char)a->high)};
}

/* Four registers of elements to bytes; tame: no result is near 2^30. The last packing puts each 128-bit lane's bytes together; an
 * order is made of them at once. */
QK_INLINE void run_block(const same *c, const float *factor, const float *shift, bool vectors, bool tame,
                         const char *src, char *dst, bool from_signed, bool to_signed) {
    qkw_i q[4];
    QK_FOUR_TIMES(k, qkw_f f = vectors ? QKW(loadu_ps)(factor + LANES * k) : c->factor;
                  qkw_f s = vectors ? QKW(loadu_ps)(shift + LANES * k) : c->shift;
                  qkw_f x = QKW(cvtepi32_ps)(QKX(load8)(src + LANES * k, from_signed)); x = QKW(fmadd_ps)(x, f, s);
                  q[k] = QKW(cvtps_epi32)(tame ? x : QKW(min_ps)(x, c->top)));
    qkw_i words[2] = {QKW(adds_epi16)(QKW(packs_epi32)(q[0], q[1]), c->zp),
                      QKW(adds_epi16)(QKW(packs_epi32)(q[2], q[3]), c->zp)};
    qkw_i bytes = to_signed ? QKW(packs_epi16)(words[0], words[1]) : QKW(packus_epi16)(words[0], words[1]);
    bytes = to_signed ? QKW(min_epi8)(QKW(max_epi8)(bytes, c->low), c->high)
                      : QKW(min_epu8)(QKW(max_epu8)(bytes, c->low), c->high);
    qkw_store(dst, QKX(order8)(bytes));
}

QK_INLINE void run_all(const qk_affine *a, const float *factor, const float *shift, bool vectors, bool tame,
                       const char *src, char *dst, size_t n, bool from_signed, bool to_signed) {
    if (n == 0) return;
    const same c = same_of(a, factor, shift);
    size_t i = 0;
    for (; n - i >= BLOCK; i += BLOCK)
        run_block(&c, factor + (vectors ? i : 0), shift + (vectors ? i : 0), vectors, tame, src + i, dst + i,
                  from_signed, to_signed);
    if (i == n) return;
    float f[BLOCK] = {0}, s[BLOCK] = {0};
    char in[BLOCK] = {0}, out[BLOCK];
    memcpy(in, src + i, n - i);
    if (vectors) memcpy(f, factor + i, (n - i) * sizeof *f);
    if (vectors) memcpy(s, shift + i, (n - i) * sizeof *s);
    run_block(&c, f, s, vectors, tame, in, out, from_signed, to_signed);
    memcpy(dst + i, out, n - i);
}

static void run(const qk_affine *a, const float *factor, const float *shift, size_t step, const void *src, void *dst,
                size_t n) {
    const bool tame = !step && n && fabsf(*factor) <= 0x1p20f && fabsf(*shift) <= 0x1p28f;
#define OF(from, to)                                                                                                   \
    step   ? run_all(a, factor, shift, true, false, src, dst, n, from, to)                                             \
    : tame ? run_all(a, factor, shift, false, true, src, dst, n, from, to)                                             \
           : run_all(a, factor, shift, false, false, src, dst, n, from, to)
    if (a->src == QDQ_DTYPE_S8)
        a->dst == QDQ_DTYPE_S8 ? (OF(true, true)) : (OF(true, false));
    else
        a->dst == QDQ_DTYPE_S8 ? (OF(false, true)) : (OF(false, false));
#undef OF
}
