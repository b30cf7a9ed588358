#include "kernels/quant/quant512_body.h"

QK_QUANT512_ROW(avx512bf16)
