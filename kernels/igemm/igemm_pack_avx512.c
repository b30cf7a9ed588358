#include "kernels/igemm/igemm_transpose_body.h"
#include "kernels/simd/vec512.h"

enum { NR = QK_IGEMM_COLS };
#define LANES_TIMES(i, ...) SIXTEEN_TIMES(i, __VA_ARGS__)
#define TRANSPOSE(v)        transpose16(v)
#include "kernels/igemm/igemm_pack_float_body.h"

bool qk_igemm_pack_f32_avx512(const qk_igemm *g, const qk_igemm_source *s, size_t panel, void *out, int32_t *sums) {
    (void)sums;
    return pack(g, s, panel, out);
}
