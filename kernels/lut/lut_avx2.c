#include "kernels/lut/lut_body.h"

void qk_lut_x8_avx2(const uint8_t table[256], const void *src, void *dst, size_t n, bool stream) {
    run(table, src, dst, n, stream);
}
