#include "kernels/simd/vec256.h"

#include "kernels/post/post_body.h"

void qk_post_avx2(const qk_post *post, const qk_post_args *args, const void *acc, size_t acc_stride, size_t row,
                  size_t n_rows, size_t col, size_t n_cols) {
    post_run(post, args, acc, acc_stride, row, n_rows, col, n_cols);
}
