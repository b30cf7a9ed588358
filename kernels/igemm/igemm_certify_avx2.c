#include "kernels/igemm/igemm_row.h"

#include <immintrin.h>

/* The k that are paired among each other, and the columns of a block. */
enum { CHUNK = 16, BLOCK = 16, N_BLOCKS = QK_IGEMM_COLS / BLOCK, MAX_SUM = 128, MAX_TRIES = 64 };

/* w' of sixteen k, and their parts above and below zero; zeros where there are none. */
typedef struct chunk {
    _Alignas(32) int8_t w[CHUNK][QK_IGEMM_COLS];
    _Alignas(32) uint8_t up[CHUNK][QK_IGEMM_COLS], down[CHUNK][QK_IGEMM_COLS];
    uint16_t partners[N_BLOCKS + 1][CHUNK]; /* by how many blocks fail: a bit for each other k */
} chunk;

static __m128i load16(const void *p) {
    return _mm_loadu_si128((const __m128i *)p);
}

static void load(const qk_igemm *g, const qk_igemm_source *s, size_t first, size_t n_cols, size_t k, chunk *out,
                 int32_t *sums) {
    const uint8_t flip = g->weights_shift != 0 ? 0x80 : 0;
    const size_t n = g->kc - k < CHUNK ? g->kc - k : CHUNK;
    const uint8_t *data = s->data;
    memset(out->w, 0, sizeof out->w);
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < n_cols; c++) {
            const ptrdiff_t at = (ptrdiff_t)(k + i) * s->k_stride + (ptrdiff_t)(first + c) * s->n_stride;
            out->w[i][c] = (int8_t)(data[at] ^ flip);
            sums[c] += out->w[i][c];
        }
    for (size_t i = 0; i < CHUNK; i++)
        for (size_t c = 0; c < QK_IGEMM_COLS; c++) {
            out->up[i][c] = (uint8_t)(out->w[i][c] > 0 ? out->w[i][c] : 0);
            out->down[i][c] = (uint8_t)(out->w[i][c] < 0 ? -out->w[i][c] : 0);
        }
}

/* Is no sum of two of a block's columns too large? */
static bool fit(const chunk *c, size_t i, size_t j, size_t col) {
    const __m128i up = _mm_adds_epu8(load16(&c->up[i][col]), load16(&c->up[j][col])),
                  down = _mm_adds_epu8(load16(&c->down[i][col]), load16(&c->down[j][col])),
                  beyond = _mm_subs_epu8(_mm_max_epu8(up, down), _mm_set1_epi8((char)MAX_SUM));
    return _mm_testz_si128(beyond, beyond) != 0;
}

/* Pairs all of `left`, the k with the least choice first, so that in all no more than `budget` blocks fail; false: not found. */
static bool pair_all(const chunk *c, unsigned left, unsigned budget, uint8_t *order, int *tries) {
    if (left == 0) return true;
    unsigned least = CHUNK, who = 0;
    for (unsigned i = 0; i < CHUNK; i++) {
        const unsigned n = (unsigned)__builtin_popcount(c->partners[0][i] & left);
        if (!(left >> i & 1) || n >= least) continue;
        least = n;
        who = i;
    }
    for (unsigned fails = 0; fails <= budget; fails++)
        for (unsigned can = c->partners[fails][who] & left; can != 0 && (*tries)-- > 0; can &= can - 1) {
            const unsigned j = (unsigned)__builtin_ctz(can);
            order[0] = (uint8_t)who;
            order[1] = (uint8_t)j;
            if (pair_all(c, left & ~(1u << who) & ~(1u << j), budget - fails, order + 2, tries)) return true;
        }
    return false;
}

/* Of the first n k, an even number. */
static void find_order(chunk *c, unsigned n, uint8_t *order) {
    memset(c->partners, 0, sizeof c->partners);
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j < i; j++) {
            unsigned fails = 0;
            for (size_t b = 0; b < N_BLOCKS; b++)
                fails += !fit(c, i, j, b * BLOCK);
            c->partners[fails][i] |= (uint16_t)(1u << j);
            c->partners[fails][j] |= (uint16_t)(1u << i);
        }
    for (unsigned budget = 0; budget <= N_BLOCKS; budget++) {
        int tries = MAX_TRIES;
        if (pair_all(c, (1u << n) - 1, budget, order, &tries)) return;
    }
    for (unsigned i = 0; i < n; i++)
        order[i] = (uint8_t)i;
}

/* The dword of k order[0 … 3] of a block from column first on, and, where a pair fails, the other halves; returns how many. */
static size_t put_dword(const chunk *c, const uint8_t *order, size_t first, int8_t *out) {
    bool is_whole = true;
    for (size_t p = 0; p < 4; p += 2) {
        const size_t i = order[p], j = order[p + 1];
        const bool fits = fit(c, i, j, first);
        is_whole &= fits;
        for (size_t col = 0; col < BLOCK; col++) {
            const int x = c->w[i][first + col], y = c->w[j][first + col];
            int8_t *pair = out + col * 4 + p, *other = pair + BLOCK * 4;
            pair[0] = (int8_t)(fits ? x : x / 2);
            pair[1] = (int8_t)(fits ? y : y / 2);
            other[0] = (int8_t)(x - pair[0]);
            other[1] = (int8_t)(y - pair[1]);
        }
    }
    return is_whole ? 1 : 2;
}

/* False: too many pairs fail. */
static bool certify(const qk_igemm *g, const qk_igemm_source *s, size_t panel, uint8_t *out, qk_igemm_certified to,
                    int32_t *sums) {
    enum { DWORD = BLOCK * 4 };
    const size_t n_cols = qk_igemm_cols_of(g, panel), most = qk_igemm_max_dwords(g), part = g->part;
    size_t n[N_BLOCKS] = {0};
    for (size_t k = 0; k < g->kc; k += CHUNK) {
        chunk c;
        const size_t n4 = g->kc - k < CHUNK ? (g->kc - k + 3) / 4 : CHUNK / 4;
        load(g, s, panel * QK_IGEMM_COLS, n_cols, k, &c, sums);
        find_order(&c, (unsigned)(4 * n4), to.order + k);
        for (size_t d = 0; d < n4; d++)
            for (size_t b = 0; b * BLOCK < n_cols; b++) {
                int8_t two[2][DWORD];
                uint8_t *block = out + b * qk_igemm_kc(g) * BLOCK * g->elem_bytes;
                const size_t more = put_dword(&c, to.order + k + 4 * d, b * BLOCK, two[0]);
                if (n[b] + more > most) return false;
                memcpy(block + n[b] * DWORD, two, more * DWORD);
                memset(block + most * DWORD + n[b], (int)(k % part / 4 + d), more);
                n[b] += more;
                to.counts[b * to.n_parts + k / part] = (uint16_t)(to.counts[b * to.n_parts + k / part] + more);
            }
    }
    return true;
}

/* Weights that do not last, or of which too many pairs fail, are packed the other way. */
bool qk_igemm_pack_x8_avx2(const qk_igemm *g, const qk_igemm_source *s, size_t panel, void *out, int32_t *sums) {
    const qk_igemm_certified to = qk_igemm_certified_of(g, (uint8_t *)out - panel * g->panel_bytes, panel);
    int32_t found[QK_IGEMM_COLS] = {0};
    memset(to.counts, 0, qk_igemm_certified_bytes(g));
    if (!g->is_lasting) return false;
    if (certify(g, s, panel, out, to, found)) {
        memcpy(sums, found, sizeof found);
        return true;
    }
    memset(to.counts, 0, qk_igemm_certified_bytes(g));
    return false;
}
