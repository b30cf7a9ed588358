#include "kernels/affine/affine_row.h"
#include "kernels/simd/table256.h"

/* So many elements with one factor are worth a table of the 256 results there are. */
enum { TABLE = 512 };

static __attribute__((noinline)) void run_table(const qk_affine *affine, const float *factor, const float *shift,
                                                const void *src, void *dst, size_t n) {
    uint8_t bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    qk_affine_avx512(affine, factor, shift, 0, bytes, bytes, sizeof bytes);
    const qk512_table t = qk512_table_of(bytes);
    qk512_look_up_some(&t, src, dst, n);
}

void qk_affine_avx512vbmi(const qk_affine *affine, const float *factor, const float *shift, size_t step,
                          const void *src, void *dst, size_t n) {
    if (step || n < TABLE)
        qk_affine_avx512(affine, factor, shift, step, src, dst, n);
    else
        run_table(affine, factor, shift, src, dst, n);
}
