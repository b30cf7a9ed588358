#include "kernels/tf/tf_body.h"

const qk_tf_row qk_tf_row_avx512 = {quantize, dequantize, QK_ISA_avx512};
