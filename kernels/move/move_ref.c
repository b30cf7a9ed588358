#include "kernels/move/move_row.h"

#include <string.h>

#define TILE(name, type)                                                                                               \
    static void name(const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i, ptrdiff_t dst_j,               \
                     qk_move_way way) {                                                                                \
        (void)way;                                                                                                     \
        for (size_t j = 0; j < nj; j++)                                                                                \
            for (size_t i = 0; i < ni; i++)                                                                            \
                memcpy(dst + (ptrdiff_t)j * dst_j + i * sizeof(type), src + (ptrdiff_t)i * src_i + j * sizeof(type),   \
                       sizeof(type));                                                                                  \
    }
TILE(tile1, uint8_t)
TILE(tile2, uint16_t)
TILE(tile4, uint32_t)
TILE(tile8, uint64_t)

/* Short rows are common (a concatenation of channels), and a call costs as much as they do. The last sixteen bytes overlap. */
static void rows(const char *src, char *dst, size_t n, size_t n_rows, ptrdiff_t src_j, ptrdiff_t dst_j) {
    for (; n_rows > 0; n_rows--, src += src_j, dst += dst_j) {
        if (n > 256 || n < 16) {
            memcpy(dst, src, n);
            continue;
        }
        for (size_t i = 0; i + 16 < n; i += 16)
            memcpy(dst + i, src + i, 16);
        memcpy(dst + n - 16, src + n - 16, 16);
    }
}

const qk_move_tiles qk_move_tiles_ref = {{tile1, tile2, tile4, tile8}, rows, QK_ISA_ref};
