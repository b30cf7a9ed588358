#include "kernels/conv/conv_tile_row.h"
#include "kernels/simd/unroll.h"

#include <immintrin.h>

#define VEC           __m256i
#define LANES         ((size_t)8)
#define VECTORS       2
#define VLOAD(p)      _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define VSTORE(p, v)  _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define VSPREAD(p)    _mm256_set1_epi32(qk_dword(p))
/* No pair of products saturates: see bytes in conv_tile_row.h. */
#define VDOT(s, x, w) _mm256_add_epi32(s, add_pairs(_mm256_maddubs_epi16(x, w)))

static const int16_t ones[16] __attribute__((aligned(32))) = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* Twelve sums, two vectors of weights, a spread dword and two products are all the registers: the ones stay in memory. Left to
 * itself, the compiler moves a sum there instead. */
QK_INLINE __m256i add_pairs(__m256i pairs) {
    __asm__("vpmaddwd %1, %0, %0" : "+x"(pairs) : "m"(ones));
    return pairs;
}
#include "kernels/conv/conv_tile_body.h"

/* As tile_of, a place at a time; n_rows and n_vectors are constants of the caller. */
QK_INLINE void add_of(const qk_tile *t, const uint8_t *const *rows, size_t n_rows, size_t n_vectors,
                      const qk_tile_place *places, size_t n, const int32_t *weights, int32_t (*sums)[QK_TILE_COLS]) {
#define START(r)                                                                                                       \
    VEC s##r##0 = VLOAD(sums[r < n_rows ? r : 0]), s##r##1 = VLOAD(sums[r < n_rows ? r : 0] + (n_vectors - 1) * LANES);
#define ADD(r)                                                                                                         \
    if (r < n_rows) {                                                                                                  \
        const VEC x = VSPREAD(row[r] + at);                                                                            \
        s##r##0 = VDOT(s##r##0, x, w0);                                                                                \
        if (n_vectors > 1) s##r##1 = VDOT(s##r##1, x, w1);                                                             \
    }
#define STORE(r)                                                                                                       \
    if (r < n_rows) {                                                                                                  \
        VSTORE(sums[r], s##r##0);                                                                                      \
        if (n_vectors > 1) VSTORE(sums[r] + LANES, s##r##1);                                                           \
    }
    SIX_ROWS(START)
    for (size_t i = 0; i < n; i++, weights += n_vectors * LANES) {
        const uint8_t *const *row = rows + places[i].tap * t->tap_stride;
        const size_t at = 4 * (size_t)places[i].dword;
        const VEC w0 = VLOAD(weights), w1 = VLOAD(weights + (n_vectors - 1) * LANES);
        SIX_ROWS(ADD)
    }
    SIX_ROWS(STORE)
#undef START
#undef ADD
#undef STORE
}

typedef void add_form(const qk_tile *t, const uint8_t *const *rows, const qk_tile_place *places, size_t n,
                      const int32_t *weights, int32_t (*sums)[QK_TILE_COLS]);
#define ADD_FORM(r, v)                                                                                                 \
    static void add_##r##_##v(const qk_tile *t, const uint8_t *const *rows, const qk_tile_place *places, size_t n,     \
                              const int32_t *weights, int32_t(*sums)[QK_TILE_COLS]) {                                  \
        add_of(t, rows, r, v, places, n, weights, sums);                                                               \
    }
#define ADD_FORMS(r) ADD_FORM(r, 1) ADD_FORM(r, 2)
ADD_FORMS(1)
ADD_FORMS(2)
ADD_FORMS(3)
ADD_FORMS(4)
ADD_FORMS(5)
ADD_FORMS(6)
static add_form *const add_forms[6][VECTORS] = {{add_1_1, add_1_2}, {add_2_1, add_2_2}, {add_3_1, add_3_2},
                                                {add_4_1, add_4_2}, {add_5_1, add_5_2}, {add_6_1, add_6_2}};

static void add(const qk_tile *t, const uint8_t *const *rows, size_t n_rows, const qk_tile_place *places, size_t n,
                const int32_t *weights, int32_t (*sums)[QK_TILE_COLS]) {
    add_forms[n_rows - 1][t->n_cols / LANES - 1](t, rows, places, n, weights, sums);
}

static void copy(const uint8_t *src, uint8_t *dst, size_t n, uint8_t flip, qdq_dtype type) {
    (void)type;
    const __m256i f = _mm256_set1_epi8((char)flip);
    size_t i = 0;
    for (; n - i >= 32; i += 32)
        VSTORE(dst + i, _mm256_xor_si256(VLOAD(src + i), f));
    for (; i < n; i++)
        dst[i] = src[i] ^ flip;
}

const qk_tile_row qk_tile_bytes_row_avx2 = {
    .isa = QK_ISA_avx2, .unit = 4, .lanes = LANES, .max_cols = LANES * VECTORS, .tile = tile, .copy = copy, .add = add};
