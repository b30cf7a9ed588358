#include "kernels/move/move_body.h"

const qk_move_tiles qk_move_tiles_avx2 = {{tile1, tile2, tile4, tile8}, rows, QK_ISA_avx2};
