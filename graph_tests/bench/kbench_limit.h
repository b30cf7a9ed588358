/* What this machine can do: loads and stores alone, and multiplications alone. */
#ifndef KBENCH_LIMIT_H
#define KBENCH_LIMIT_H

#include "kbench.h"

#ifdef __cplusplus
extern "C" {
#endif

/* n steps of `reads` cache lines read one after the other from src, and `writes` written one after the other to dst, both on cache
 * lines. The shares are those of one of the mixes below. */
typedef void kbench_stream_fn(const char *src, char *dst, size_t n);
/* n multiply instructions on registers; returns the products of each. */
typedef size_t kbench_multiply_fn(size_t n);

/* KBENCH_MIX(reads, writes) */
#define KBENCH_MIXES                                                                                                   \
    KBENCH_MIX(1, 0)                                                                                                   \
    KBENCH_MIX(0, 1)                                                                                                   \
    KBENCH_MIX(1, 1)                                                                                                   \
    KBENCH_MIX(2, 1)                                                                                                   \
    KBENCH_MIX(3, 1)                                                                                                   \
    KBENCH_MIX(4, 1)                                                                                                   \
    KBENCH_MIX(8, 1)                                                                                                   \
    KBENCH_MIX(1, 2)                                                                                                   \
    KBENCH_MIX(1, 4)                                                                                                   \
    KBENCH_MIX(1, 8)

typedef struct kbench_mix {
    size_t reads, writes;
    kbench_stream_fn *plain, *streaming;
} kbench_mix;

/* The functions of a level, and how many mixes. */
#define KBENCH_MIX(reads, writes) +1
enum { KBENCH_N_MIXES = KBENCH_MIXES };
#undef KBENCH_MIX
extern const kbench_mix kbench_mixes_avx512[KBENCH_N_MIXES], kbench_mixes_avx2[KBENCH_N_MIXES],
    kbench_mixes_ref[KBENCH_N_MIXES];

/* The mix nearest to so many bytes, by the widest stores of the machine. */
const kbench_mix *kbench_mix_of(size_t read_bytes, size_t write_bytes);
/* The multiply loop for products of a kernel of this level. */
kbench_multiply_fn *kbench_multiply_of(kbench_products products, qk_isa isa);

kbench_multiply_fn kbench_int8_avx512vnni, kbench_int8_avxvnni, kbench_int8_avx512, kbench_int8_avx2, kbench_f32_avx512,
    kbench_f32_avx2;

#ifdef __cplusplus
}
#endif
#endif
