#include "kernels/tf/tf_body.h"

const qk_tf_row qk_tf_row_avx2 = {quantize, dequantize, QK_ISA_avx2};
