#include "kernels/move/move_row.h"

#include <string.h>

#define TILE(name, type)                                                                                               \
    static void name(const char *src, char *dst, size_t ni, size_t nj, ptrdiff_t src_i, ptrdiff_t dst_j) {             \
        for (size_t j = 0; j < nj; j++)                                                                                \
            for (size_t i = 0; i < ni; i++)                                                                            \
                memcpy(dst + (ptrdiff_t)j * dst_j + i * sizeof(type), src + (ptrdiff_t)i * src_i + j * sizeof(type),   \
                       sizeof(type));                                                                                  \
    }
TILE(tile1, uint8_t)
TILE(tile2, uint16_t)
TILE(tile4, uint32_t)
TILE(tile8, uint64_t)

const qk_move_tiles qk_move_tiles_ref = {{tile1, tile2, tile4, tile8}, QK_ISA_ref};
