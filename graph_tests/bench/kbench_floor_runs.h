/* Loops written by hand, like kbench_floor.h: runs of len elements, one behind the other, each with a scale and a zero point. They
 * multiply by reciprocals, round what is near a tie one way or the other, and know nothing of NaNs. */
#ifndef KBENCH_FLOOR_RUNS_H
#define KBENCH_FLOOR_RUNS_H

#include "kbench.h"

#ifdef __cplusplus
extern "C" {
#endif

/* len is a multiple of 64, or 32; n_runs is even. Scales and zero points can be read, whatever they are, 16 at a time. */
typedef void kbench_runs_floor(const void *src, void *dst, size_t n_runs, size_t len, const float *scales,
                               const int32_t *zps);

typedef enum kbench_run_real { KBENCH_RUN_F32, KBENCH_RUN_BF16, KBENCH_RUN_F16, KBENCH_N_RUN_REAL } kbench_run_real;
typedef enum kbench_run_stored {
    KBENCH_RUN_U8,
    KBENCH_RUN_S8,
    KBENCH_RUN_U4,
    KBENCH_RUN_S4,
    KBENCH_N_RUN_STORED
} kbench_run_stored;

typedef struct kbench_run_floors {
    kbench_runs_floor *quantize[KBENCH_N_RUN_REAL][KBENCH_N_RUN_STORED]; /* NULL: none */
    kbench_runs_floor *dequantize[KBENCH_N_RUN_REAL][KBENCH_N_RUN_STORED];
} kbench_run_floors;

/* NULL where the machine lacks byte permutes or bf16 conversions. */
const kbench_run_floors *kbench_run_floors_of_host(void);
extern const kbench_run_floors kbench_run_floors_avx512bf16;

#ifdef __cplusplus
}
#endif
#endif
