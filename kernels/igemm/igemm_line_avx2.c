#define LINE qk_igemm_line_avx2
#include "kernels/igemm/igemm_line_body.h"
