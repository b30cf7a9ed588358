#include "kernels/binary/binary_body.h"

void qk_binary_avx2(const qk_binary *chain, const void *src, const void *const *operands, void *dst, size_t n) {
    run(chain, src, operands, dst, n);
}
