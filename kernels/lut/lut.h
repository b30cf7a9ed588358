/* Bytes through a table: dst[i] = table[src[i]].
 *
 * Any dequantize -> unary ops -> quantize between u8 and s8 is such a table (qk_quant_table), requantization and saturating
 * conversion included; the index is the byte as stored, so s8 needs nothing of its own. `src` and `dst` may be the same, and
 * must not overlap otherwise. Nothing is read or written outside of the n bytes. Single-threaded: split the bytes. */
#ifndef QK_LUT_H
#define QK_LUT_H

#include "kernels/isa/isa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes for each thread that is asked: with fewer, asking costs more than it brings. */
#define QK_LUT_GRAIN (128 * 1024)

/* `stream`: write past the caches, for results nobody reads soon (qk_isa_stream_bytes). */
typedef void qk_lut_x8_fn(const uint8_t table[256], const void *src, void *dst, size_t n, bool stream);

/* The best under the present cap; the level through isa_out, which may be NULL. */
qk_lut_x8_fn *qk_lut_x8_choose(qk_isa *isa_out);

#ifdef __cplusplus
}
#endif
#endif
