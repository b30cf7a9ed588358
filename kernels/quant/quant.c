#include "kernels/quant/quant.h"
#include "kernels/quant/quant_row.h"

#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

static const qk_quant_row *const rows[] = {
#define QK_QUANT(level) &qk_quant_##level,
#include "kernels/quant/quant.def"
#undef QK_QUANT
};

static const qk_quant_row *choose(void) {
    size_t i = 0;
    while (!qk_isa_has(rows[i]->isa)) /* the last is ref, which is always there */
        i++;
    return rows[i];
}

typedef struct stored_type {
    int index;    /* of the kernels; 4-bit types go through the bytes of the same sign */
    size_t bytes; /* of an element as the kernels see it */
    bool is_4bit, is_signed;
} stored_type;

static bool stored_of(qdq_dtype dtype, stored_type *out) {
    switch ((int)dtype) {
    case QDQ_DTYPE_U8: *out = (stored_type){QK_U8, 1, false, false}; return true;
    case QDQ_DTYPE_S8: *out = (stored_type){QK_S8, 1, false, true}; return true;
    case QDQ_DTYPE_U16: *out = (stored_type){QK_U16, 2, false, false}; return true;
    case QDQ_DTYPE_S16: *out = (stored_type){QK_S16, 2, false, true}; return true;
    case QDQ_DTYPE_S32: *out = (stored_type){QK_S32, 4, false, true}; return true;
    case QDQ_DTYPE_U4: *out = (stored_type){QK_U8, 1, true, false}; return true;
    case QDQ_DTYPE_S4: *out = (stored_type){QK_S8, 1, true, true}; return true;
    default: return false;
    }
}

bool qk_quant_init(qk_quant *quant) {
    stored_type type;
    const qk_quant_map *m = &quant->map;
    bool is_real = quant->real == QDQ_DTYPE_F32 || quant->real == QDQ_DTYPE_BF16 || quant->real == QDQ_DTYPE_F16;
    if (!is_real || !stored_of(quant->stored, &type) || !m->rows || !m->cols || !m->row_group || !m->col_group)
        return false;
    quant->row = choose();
    return true;
}

qk_isa qk_quant_isa(const qk_quant *quant) {
    return quant->row->isa;
}

/* ---- which scale, for how long ---- */

/* A piece of the tensor that one kernel call does: `n` elements with one scale (rows 0), or rows x cols with a scale per
 * column. `param` is the index of its first scale. */
typedef struct piece {
    size_t n, rows, cols, param;
} piece;

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* The piece that starts at element `at`, of at most n elements. */
static piece piece_at(const qk_quant_map *m, size_t at, size_t n) {
    size_t col_params = (m->cols - 1) / m->col_group + 1, row_params = (m->rows - 1) / m->row_group + 1;
    size_t c = at % m->cols, row = at / m->cols, r = row % m->rows;
    if (col_params == 1 && row_params == 1 && m->plane_step == 0) return (piece){.n = n};
    size_t param = row / m->rows * m->plane_step + r / m->row_group * col_params + c / m->col_group;
    if (m->col_group == 1 && m->cols > 1) {
        if (c != 0 || n < m->cols) {
            size_t cols = least(m->cols - c, n);
            return (piece){cols, 1, cols, param};
        }
        size_t same =
            row_params == 1 && m->plane_step == 0 ? SIZE_MAX : least(m->row_group - r % m->row_group, m->rows - r);
        size_t n_rows = least(same, n / m->cols);
        return (piece){n_rows * m->cols, n_rows, m->cols, param};
    }
    if (col_params > 1)
        return (piece){.n = least(n, least(m->col_group - c % m->col_group, m->cols - c)), .param = param};
    size_t n_rows = least(m->row_group - r % m->row_group, m->rows - r);
    /* Rows left may be more than elements left; their product is inside the tensor all the same. */
    return (piece){.n = least(n, n_rows * m->cols - c), .param = param};
}

/* Goes through pieces in order. Scales along one axis with elements inside of it are the common map, and often of short
 * pieces: these are counted instead of divided for. */
typedef struct walk {
    const qk_quant_map *map;
    size_t at, left; /* elements */
    bool is_axis;
    size_t param, in_row; /* is_axis: of the next piece, and what its row still has */
} walk;

static walk walk_of(const qk_quant_map *m, size_t at, size_t n) {
    walk w = {.map = m, .at = at, .left = n};
    w.is_axis = m->rows > 1 && m->row_group == 1 && m->col_group >= m->cols && m->plane_step == 0;
    if (w.is_axis) {
        w.param = at / m->cols % m->rows;
        w.in_row = m->cols - at % m->cols;
    }
    return w;
}

static piece next_piece(walk *w) {
    piece p;
    if (w->is_axis) {
        p = (piece){.n = least(w->in_row, w->left), .param = w->param};
        w->param = w->param + 1 == w->map->rows ? 0 : w->param + 1;
        w->in_row = w->map->cols;
    } else {
        p = piece_at(w->map, w->at, w->left);
    }
    w->at += p.n;
    w->left -= p.n;
    return p;
}

typedef struct job {
    const qk_quant *quant;
    const float *scales;
    const int32_t *zps;
    stored_type type;
} job;

static void quantize_f32(const job *j, const float *src, void *dst, size_t at, size_t n, bool stream) {
    const qk_quant *q = j->quant;
    walk w = walk_of(&q->map, at, n);
    for (size_t done = 0; done < n;) {
        piece p = next_piece(&w);
        const int32_t *zps = j->zps ? j->zps + p.param : NULL;
        void *d = (char *)dst + done * j->type.bytes;
        if (p.rows)
            q->row->q_cols[j->type.index](src + done, d, p.rows, p.cols, p.cols, j->scales + p.param, zps, q->order);
        else
            q->row->q_run[j->type.index](src + done, d, p.n, j->scales[p.param], zps ? *zps : 0, q->order, stream);
        done += p.n;
    }
}

static void dequantize_f32(const job *j, const void *src, float *dst, size_t at, size_t n, bool stream) {
    const qk_quant *q = j->quant;
    walk w = walk_of(&q->map, at, n);
    for (size_t done = 0; done < n;) {
        piece p = next_piece(&w);
        const int32_t *zps = j->zps ? j->zps + p.param : NULL;
        const void *s = (const char *)src + done * j->type.bytes;
        if (p.rows)
            q->row->dq_cols[j->type.index](s, dst + done, p.rows, p.cols, p.cols, j->scales + p.param, zps, stream);
        else
            q->row->dq_run[j->type.index](s, dst + done, p.n, j->scales[p.param], zps ? *zps : 0, stream);
        done += p.n;
    }
}

/* ---- types without kernels of their own go through a small buffer ---- */

enum { CHUNK = 512 };

static const void *element(const void *base, qdq_dtype dtype, size_t i) {
    size_t bits = dtype == QDQ_DTYPE_U4 || dtype == QDQ_DTYPE_S4     ? 4
                  : dtype == QDQ_DTYPE_U8 || dtype == QDQ_DTYPE_S8   ? 8
                  : dtype == QDQ_DTYPE_F32 || dtype == QDQ_DTYPE_S32 ? 32
                                                                     : 16;
    return (const char *)base + (bits == 4 ? i / 2 : i * (bits / 8));
}

/* Streaming stores are in no order with others until a fence; one for all pieces of a call. */
static void stream_end(const qk_quant *quant) {
    (void)quant;
#if defined(__SSE2__)
    if (quant->stream) _mm_sfence();
#endif
}

static bool job_of(const qk_quant *quant, const float *scales, const int32_t *zps, job *out) {
    *out = (job){.quant = quant, .scales = scales, .zps = zps};
    return stored_of(quant->stored, &out->type);
}

void qk_quantize(const qk_quant *quant, const float *scales, const int32_t *zps, const void *src, void *dst,
                 size_t first, size_t n) {
    job j;
    if (!job_of(quant, scales, zps, &j)) return;
    bool wide = quant->real == QDQ_DTYPE_F32;
    size_t step = wide && !j.type.is_4bit ? n : CHUNK;
    float reals[CHUNK];
    uint8_t bytes[CHUNK];
    for (size_t end = first + n; first < end; first += step) {
        size_t m = least(step, end - first);
        const void *s = element(src, quant->real, first);
        void *d = (void *)element(dst, quant->stored, first);
        if (!wide) {
            (quant->real == QDQ_DTYPE_F16 ? quant->row->f32_of_f16 : quant->row->f32_of_bf16)(s, reals, m);
            s = reals;
        }
        quantize_f32(&j, s, j.type.is_4bit ? bytes : d, first, m, !j.type.is_4bit && quant->stream);
        if (j.type.is_4bit) quant->row->pack4(bytes, d, m, j.type.is_signed);
    }
    stream_end(quant);
}

void qk_dequantize(const qk_quant *quant, const float *scales, const int32_t *zps, const void *src, void *dst,
                   size_t first, size_t n) {
    job j;
    if (!job_of(quant, scales, zps, &j)) return;
    bool wide = quant->real == QDQ_DTYPE_F32;
    size_t step = wide && !j.type.is_4bit ? n : CHUNK;
    float reals[CHUNK];
    uint8_t bytes[CHUNK];
    for (size_t end = first + n; first < end; first += step) {
        size_t m = least(step, end - first);
        const void *s = element(src, quant->stored, first);
        void *d = (void *)element(dst, quant->real, first);
        if (j.type.is_4bit) {
            quant->row->unpack4(s, bytes, m, j.type.is_signed);
            s = bytes;
        }
        dequantize_f32(&j, s, wide ? d : reals, first, m, wide && quant->stream);
        if (!wide) (quant->real == QDQ_DTYPE_F16 ? quant->row->f16_of_f32 : quant->row->bf16_of_f32)(reals, d, m);
    }
    stream_end(quant);
}

void qk_quant_table(const qk_x8 *src, void (*map)(float *values, size_t n, void *context), void *context,
                    const qk_x8 *dst, qk_quant_order order, uint8_t table[256]) {
    const qk_quant_row *row = choose();
    float values[256];
    uint8_t bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    row->dq_run[src->dtype == QDQ_DTYPE_S8 ? QK_S8 : QK_U8](bytes, values, 256, src->scale, src->zp, false);
    if (map) map(values, 256, context);
    row->q_run[dst->dtype == QDQ_DTYPE_S8 ? QK_S8 : QK_U8](values, table, 256, dst->scale, dst->zp, order, false);
}

void qk_minmax_f32(const float *src, size_t n, float *min_out, float *max_out) {
    choose()->minmax(src, n, min_out, max_out);
}
