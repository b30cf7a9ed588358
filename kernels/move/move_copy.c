#include "kernels/move/move_row.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

static const qk_move_tiles *const rows[] = {
#define QK_MOVE(level) &qk_move_tiles_##level,
#include "kernels/move/move.def"
#undef QK_MOVE
};

/* What one task is at most: enough to be worth a task. Of a transpose, many lines of either side, on not too many pages. */
enum { TILE_BYTES = 64 << 10, TILE_PAST_BYTES = 512 << 10, TILE_SIDE = 512 };
enum { ROW_BYTES = 64 << 10, STRIDED_BYTES = 16 << 10 };

typedef struct axis {
    size_t n;
    ptrdiff_t src, dst; /* elements */
} axis;

static ptrdiff_t magnitude(ptrdiff_t a) {
    return a < 0 ? -a : a;
}

/* Drop extents of 1, order by how far dst moves (farthest first), join neighbours that move alike. Returns how many are left. */
static uint32_t tidy(axis *a, uint32_t n) {
    uint32_t kept = 0;
    for (uint32_t k = 0; k < n; k++)
        if (a[k].n != 1) a[kept++] = a[k];
    for (uint32_t k = 1; k < kept; k++) /* insertion keeps equals in order */
        for (uint32_t m = k; m > 0 && magnitude(a[m - 1].dst) < magnitude(a[m].dst); m--) {
            axis t = a[m];
            a[m] = a[m - 1];
            a[m - 1] = t;
        }
    uint32_t joined = 0;
    for (uint32_t k = 0; k < kept; k++) {
        axis *last = joined ? &a[joined - 1] : NULL;
        ptrdiff_t extent = (ptrdiff_t)a[k].n;
        if (last && last->src == a[k].src * extent && last->dst == a[k].dst * extent)
            *last = (axis){last->n * a[k].n, a[k].src, a[k].dst};
        else
            a[joined++] = a[k];
    }
    return joined;
}

static void take(axis *a, uint32_t *n, uint32_t which) {
    for (uint32_t k = which; k + 1 < *n; k++)
        a[k] = a[k + 1];
    (*n)--;
}

/* n_bytes: of either tensor. */
static void set_way(qk_move *move, size_t n_bytes) {
    const size_t row_bytes = move->ni * move->elem_bytes, much = qk_isa_stream_bytes();
    if (move->form == QK_MOVE_ROW) {
        /* Whole lines, or nearly: what a line gets from elsewhere should not meet a streaming store of the rest. */
        const bool is_whole = row_bytes >= 1024 || (row_bytes % 64 == 0 && move->dst_j % 64 == 0);
        if (n_bytes >= much && is_whole) move->way = QK_MOVE_PAST;
    } else if (move->form == QK_MOVE_TRANSPOSE) {
        /* Lines far from each other are written at half the speed through the caches: it pays sooner. */
        if (n_bytes >= much / 4)
            move->way = QK_MOVE_PAST;
        else if (n_bytes >= qk_isa_l2_bytes() / 2)
            move->way = QK_MOVE_FAR;
    }
}

/* So much of the other side makes a task; whole blocks of lines. */
static size_t step_beside(size_t most, size_t n) {
    const size_t step = most / n / 64 * 64;
    return step < 64 ? 64 : step;
}

static void cut_transpose(qk_move *move) {
    const bool past = move->way == QK_MOVE_PAST;
    const size_t most = (past ? TILE_PAST_BYTES : TILE_BYTES) / move->elem_bytes;
    /* Rows of dst that follow each other are written as one, if they are short; else past the caches strips are read along j. */
    const bool joined = move->dst_j == (ptrdiff_t)(move->ni * move->elem_bytes) && move->ni <= 2 * TILE_SIDE;
    size_t *first = past && !joined ? &move->j_step : &move->i_step;
    size_t *second = past && !joined ? &move->i_step : &move->j_step;
    const size_t n1 = past && !joined ? move->nj : move->ni, n2 = past && !joined ? move->ni : move->nj;
    *first = n1 <= 2 * TILE_SIDE ? n1 : TILE_SIDE;
    *second = step_beside(most, *first);
    if (*second > n2) *first = step_beside(most, n2);
}

bool qk_move_init(qk_move *move, uint32_t elem_bytes, int32_t ndims, const int64_t *dims, const int64_t *src_strides,
                  const int64_t *dst_strides) {
    if (ndims < 0 || ndims > QK_MOVE_MAX_NDIMS || elem_bytes == 0 || elem_bytes > 8 ||
        (elem_bytes & (elem_bytes - 1)) != 0)
        return false;
    memset(move, 0, sizeof *move);
    move->elem_bytes = elem_bytes;
    axis a[QK_MOVE_MAX_NDIMS + 1];
    uint32_t n = (uint32_t)ndims;
    bool is_empty = false;
    size_t n_bytes = elem_bytes; /* only compared: more than there can be is no harm */
    for (uint32_t k = 0; k < n; k++) {
        if (dims[k] < 0) return false;
        is_empty |= dims[k] == 0;
        n_bytes *= (size_t)dims[k];
        a[k] = (axis){(size_t)dims[k], (ptrdiff_t)src_strides[k], (ptrdiff_t)dst_strides[k]};
    }
    if (is_empty) return true;
    n = tidy(a, n);
    if (n == 0) a[n++] = (axis){1, 1, 1};

    axis i = a[n - 1], j = {1, 0, 0};
    move->form = QK_MOVE_STRIDED;
    n--;
    if (i.dst == 1 && i.src == 1) {
        move->form = QK_MOVE_ROW;
    } else if (i.dst == 1) {
        for (uint32_t k = 0; k < n; k++)
            if (a[k].src == 1) {
                move->form = QK_MOVE_TRANSPOSE;
                j = a[k];
                take(a, &n, k);
                break;
            }
    }
    if (move->form != QK_MOVE_TRANSPOSE && n > 0) j = a[--n]; /* a loop over rows, which are often short */
    ptrdiff_t bytes = (ptrdiff_t)elem_bytes;
    move->ni = i.n;
    move->src_i = i.src * bytes;
    move->dst_i = i.dst * bytes;
    move->nj = j.n;
    move->src_j = j.src * bytes;
    move->dst_j = j.dst * bytes;
    set_way(move, n_bytes);
    if (move->form == QK_MOVE_TRANSPOSE) {
        cut_transpose(move);
    } else {
        move->i_step = (move->form == QK_MOVE_ROW ? ROW_BYTES : STRIDED_BYTES) / elem_bytes;
        move->j_step = i.n < move->i_step ? move->i_step / i.n : 1;
    }
    move->i_tasks = (move->ni - 1) / move->i_step + 1;
    move->j_tasks = (move->nj - 1) / move->j_step + 1;
    move->n_tasks = move->i_tasks * move->j_tasks;
    move->n_outer = n;
    for (uint32_t k = 0; k < n; k++) {
        move->outer[k] = a[k].n;
        move->outer_src[k] = a[k].src * bytes;
        move->outer_dst[k] = a[k].dst * bytes;
        move->n_tasks *= a[k].n;
    }

    size_t r = 0, log = elem_bytes == 1 ? 0 : elem_bytes == 2 ? 1 : elem_bytes == 4 ? 2 : 3;
    while (!qk_isa_has(rows[r]->isa)) /* the last is ref, which is always there */
        r++;
    move->tile = rows[r]->of_bytes[log];
    move->rows = rows[r]->rows;
    const bool own = move->form == QK_MOVE_TRANSPOSE || (move->form == QK_MOVE_ROW && move->way != QK_MOVE_PAST);
    move->isa = own ? rows[r]->isa : QK_ISA_ref;
    return true;
}

/* With stores that come from a whole line on. */
void qk_move_stream_row(const char *src, char *dst, size_t n) {
    size_t i = (64 - (uintptr_t)dst % 64) % 64;
    i = i < n ? i : n;
    memcpy(dst, src, i);
#if defined(__SSE2__)
    for (; n - i >= 64; i += 64) {
        const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(src + i));
        const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(src + i + 16));
        const __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(src + i + 32));
        const __m128i d = _mm_loadu_si128((const __m128i *)(const void *)(src + i + 48));
        _mm_stream_si128((__m128i *)(void *)(dst + i), a);
        _mm_stream_si128((__m128i *)(void *)(dst + i + 16), b);
        _mm_stream_si128((__m128i *)(void *)(dst + i + 32), c);
        _mm_stream_si128((__m128i *)(void *)(dst + i + 48), d);
    }
#endif
    memcpy(dst + i, src + i, n - i);
}

#define STRIDED(type)                                                                                                  \
    for (size_t i = 0; i < n; i++)                                                                                     \
        memcpy(dst + (ptrdiff_t)i * dst_i, src + (ptrdiff_t)i * src_i, sizeof(type));                                  \
    break

static void copy_strided(uint32_t bytes, const char *src, char *dst, size_t n, ptrdiff_t src_i, ptrdiff_t dst_i) {
    switch (bytes) {
    case 1:
        if (src_i == 0 && dst_i == 1) {
            memset(dst, *src, n);
            break;
        }
        STRIDED(uint8_t);
    case 2: STRIDED(uint16_t);
    case 4: STRIDED(uint32_t);
    default: STRIDED(uint64_t);
    }
}

void qk_move_run(const qk_move *m, const void *src, void *dst, size_t first, size_t n) {
    if (n == 0) return;
    /* Where the first task is: the odometer of the outer axes, then the cut of the inner form. */
    size_t inner = m->i_tasks * m->j_tasks, cut = first % inner, rest = first / inner, x[QK_MOVE_MAX_NDIMS];
    const char *s = src;
    char *d = dst;
    for (uint32_t k = m->n_outer; k-- > 0;) {
        x[k] = rest % m->outer[k];
        rest /= m->outer[k];
        s += (ptrdiff_t)x[k] * m->outer_src[k];
        d += (ptrdiff_t)x[k] * m->outer_dst[k];
    }
    for (;;) {
        size_t i = cut % m->i_tasks * m->i_step, j = cut / m->i_tasks * m->j_step;
        size_t ni = m->ni - i < m->i_step ? m->ni - i : m->i_step, nj = m->nj - j < m->j_step ? m->nj - j : m->j_step;
        const char *si = s + (ptrdiff_t)i * m->src_i + (ptrdiff_t)j * m->src_j;
        char *di = d + (ptrdiff_t)i * m->dst_i + (ptrdiff_t)j * m->dst_j;
        switch (m->form) {
        case QK_MOVE_ROW:
            if (m->way != QK_MOVE_PAST) {
                m->rows(si, di, ni * m->elem_bytes, nj, m->src_j, m->dst_j);
                break;
            }
            for (; nj > 0; nj--, si += m->src_j, di += m->dst_j)
                qk_move_stream_row(si, di, ni * m->elem_bytes);
            break;
        case QK_MOVE_TRANSPOSE: m->tile(si, di, ni, nj, m->src_i, m->dst_j, m->way); break;
        case QK_MOVE_STRIDED:
            for (; nj > 0; nj--, si += m->src_j, di += m->dst_j)
                copy_strided(m->elem_bytes, si, di, ni, m->src_i, m->dst_i);
            break;
        }
        if (--n == 0) break;
        if (++cut < inner) continue;
        cut = 0;
        for (uint32_t k = m->n_outer; k-- > 0;) {
            s += m->outer_src[k];
            d += m->outer_dst[k];
            if (++x[k] < m->outer[k]) break;
            s -= (ptrdiff_t)m->outer[k] * m->outer_src[k];
            d -= (ptrdiff_t)m->outer[k] * m->outer_dst[k];
            x[k] = 0;
        }
    }
#if defined(__SSE2__)
    if (m->way == QK_MOVE_PAST) _mm_sfence();
#endif
}
