/* Traits of data types and exact conversions of single elements. */
#ifndef QDQI_DTYPE_H
#define QDQI_DTYPE_H

#include "qdq/qdq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* f32, f16, bf16, f64, f8 */
bool qdqi_dtype_is_float(qdq_dtype dtype);
/* integers, without boolean */
bool qdqi_dtype_is_int(qdq_dtype dtype);
/* Range of an integer type (boolean: 0…1). */
int64_t qdqi_dtype_min(qdq_dtype dtype);
int64_t qdqi_dtype_max(qdq_dtype dtype);
/* Bytes of `n` elements: n * bits rounded up to whole bytes. False on overflow or n < 0. */
bool qdqi_dtype_bytes(qdq_dtype dtype, int64_t n, size_t *bytes_out);

/* Bit-exact conversions; to the narrow types: round half to even; NaN stays NaN. f8_e4m3 is the FN form: no infinity,
 * overflow saturates to 448 when `saturate`, else NaN; f8_e5m2: overflow saturates to 57344, else infinity. */
float qdqi_f32_of_f16(uint16_t h);
uint16_t qdqi_f16_of_f32(float f);
float qdqi_f32_of_bf16(uint16_t h);
uint16_t qdqi_bf16_of_f32(float f);
float qdqi_f32_of_f8_e4m3(uint8_t v);
uint8_t qdqi_f8_e4m3_of_f32(float f, bool saturate);
float qdqi_f32_of_f8_e5m2(uint8_t v);
uint8_t qdqi_f8_e5m2_of_f32(float f, bool saturate);

/* Element `i` of a buffer of `dtype` (4-bit types: nibble i). Integers are exact in the _i64 form; the f32 form of s32/s64 rounds to
 * nearest. `_load_i64` of a float truncates with saturation (NaN gives 0). */
float qdqi_load_f32(const void *data, qdq_dtype dtype, int64_t i);
double qdqi_load_f64(const void *data, qdq_dtype dtype, int64_t i);
int64_t qdqi_load_i64(const void *data, qdq_dtype dtype, int64_t i);
/* Store into element `i`. To an integer type: `_f32` rounds half to even and saturates (NaN gives 0), `_i64` saturates.
 * Stores into 4-bit types touch only their own nibble; two threads must not share a byte. */
void qdqi_store_f32(void *data, qdq_dtype dtype, int64_t i, float value);
void qdqi_store_f64(void *data, qdq_dtype dtype, int64_t i, double value);
void qdqi_store_i64(void *data, qdq_dtype dtype, int64_t i, int64_t value);

#ifdef __cplusplus
}
#endif
#endif
