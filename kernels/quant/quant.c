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

/* The kernels' index of a type; -1: none. */
static int stored_of(qdq_dtype dtype) {
    switch ((int)dtype) {
    case QDQ_DTYPE_U8: return QK_U8;
    case QDQ_DTYPE_S8: return QK_S8;
    case QDQ_DTYPE_U16: return QK_U16;
    case QDQ_DTYPE_S16: return QK_S16;
    case QDQ_DTYPE_S32: return QK_S32;
    case QDQ_DTYPE_U4: return QK_U4;
    case QDQ_DTYPE_S4: return QK_S4;
    default: return -1;
    }
}

static int real_of(qdq_dtype dtype) {
    switch ((int)dtype) {
    case QDQ_DTYPE_F32: return QK_F32;
    case QDQ_DTYPE_BF16: return QK_BF16;
    case QDQ_DTYPE_F16: return QK_F16;
    default: return -1;
    }
}

bool qk_quant_init(qk_quant *quant) {
    const qk_quant_map *m = &quant->map;
    if (real_of(quant->real) < 0 || stored_of(quant->stored) < 0 || !m->rows || !m->cols || !m->row_group ||
        !m->col_group)
        return false;
    quant->row = choose();
    return true;
}

qk_isa qk_quant_isa(const qk_quant *quant) {
    return quant->row->isa;
}

/* ---- which scale, for how long ---- */

/* A piece of the tensor that one kernel call does: n_runs runs of `len` elements with a scale each, or (len 0) rows x cols with a
 * scale per column. `param` is the index of its first scale. */
typedef struct piece {
    size_t n_runs, len, rows, cols, param;
} piece;

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Elements `len` apart change their scale to the next one, up to `end` elements from here; the first run may have begun
 * `into` elements ago. */
static piece runs_of(size_t into, size_t len, size_t end, size_t param) {
    if (into != 0 || end < len) return (piece){1, least(len - into, end), 0, 0, param};
    return (piece){end / len, len, 0, 0, param};
}

/* The piece that starts at element `at`, of at most n elements. Sizes may be as large as the caller likes (a group that covers
 * more than there is), products of them are not formed. */
static piece piece_at(const qk_quant_map *m, size_t at, size_t n) {
    size_t col_params = (m->cols - 1) / m->col_group + 1, row_params = (m->rows - 1) / m->row_group + 1;
    if (col_params == 1 && row_params == 1 && m->plane_step == 0) return (piece){1, n, 0, 0, 0};
    size_t c = at % m->cols, row = at / m->cols, r = row % m->rows, rows_left = m->rows - r;
    size_t param = row / m->rows * m->plane_step + r / m->row_group * col_params + c / m->col_group;
    if (m->col_group == 1 && m->cols > 1) {
        if (c != 0 || n < m->cols) return (piece){0, 0, 1, least(m->cols - c, n), param};
        size_t same =
            row_params == 1 && m->plane_step == 0 ? SIZE_MAX : least(m->row_group - r % m->row_group, rows_left);
        return (piece){0, 0, least(same, n / m->cols), m->cols, param};
    }
    size_t plane_left = n / m->cols < rows_left ? n : least(n, rows_left * m->cols - c);
    if (col_params > 1) {
        /* groups go on from row to row where each row has its own and whole ones */
        size_t row_left = least(n, m->cols - c);
        bool goes_on = m->row_group == 1 && m->cols % m->col_group == 0;
        return runs_of(c % m->col_group, least(m->col_group, m->cols - c + c % m->col_group),
                       goes_on ? plane_left : row_left, param);
    }
    if (m->row_group == 1) return runs_of(c, m->cols, plane_left, param);
    /* Rows left may be more than elements left; their product is inside the tensor all the same. */
    size_t n_rows = least(m->row_group - r % m->row_group, rows_left);
    return (piece){1, n / m->cols < n_rows ? n : least(n, n_rows * m->cols - c), 0, 0, param};
}

typedef struct job {
    const qk_quant *quant;
    const float *scales;
    const int32_t *zps;
    int real, stored;
} job;

static const void *element(const void *base, size_t bits, size_t i) {
    return (const char *)base + (bits == 4 ? i / 2 : i * (bits / 8));
}

static size_t real_bits(int real) {
    return real == QK_F32 ? 32 : 16;
}

/* The pieces of elements at ... at+n-1, which are at src and dst, with the kernels of these types. */
static void quantize_pieces(const job *j, int real, int stored, const void *src, void *dst, size_t at, size_t n,
                            bool stream) {
    const qk_quant *q = j->quant;
    for (size_t done = 0; done < n;) {
        piece p = piece_at(&q->map, at + done, n - done);
        const float *scales = j->scales + p.param;
        const int32_t *zps = j->zps ? j->zps + p.param : NULL;
        const void *s = element(src, real_bits(real), done);
        void *d = (void *)element(dst, qk_stored_bits(stored), done);
        if (p.len)
            q->row->q_runs[real][stored](s, d, p.n_runs, p.len, scales, zps, q->order, stream);
        else
            q->row->q_cols[stored](s, d, p.rows, p.cols, scales, zps, q->order, stream);
        done += p.len ? p.n_runs * p.len : p.rows * p.cols;
    }
}

static void dequantize_pieces(const job *j, int real, int stored, const void *src, void *dst, size_t at, size_t n,
                              bool stream) {
    const qk_quant *q = j->quant;
    for (size_t done = 0; done < n;) {
        piece p = piece_at(&q->map, at + done, n - done);
        const float *scales = j->scales + p.param;
        const int32_t *zps = j->zps ? j->zps + p.param : NULL;
        const void *s = element(src, qk_stored_bits(stored), done);
        void *d = (void *)element(dst, real_bits(real), done);
        if (p.len)
            q->row->dq_runs[real][stored](s, d, p.n_runs, p.len, scales, zps, stream);
        else
            q->row->dq_cols[stored](s, d, p.rows, p.cols, scales, zps, stream);
        done += p.len ? p.n_runs * p.len : p.rows * p.cols;
    }
}

/* ---- types without kernels of their own go through a small buffer ---- */

enum { CHUNK = 1024 };

/* Are all pieces runs, and, of 4-bit elements, whole bytes? */
static bool is_runs(const job *j) {
    const qk_quant_map *m = &j->quant->map;
    if (m->rows == 1 && m->cols == 1 && m->plane_step == 0) return true;
    if (m->col_group == 1 && m->cols > 1) return false;
    return qk_stored_bits(j->stored) != 4 || (m->cols % 2 == 0 && (m->col_group >= m->cols || m->col_group % 2 == 0));
}

/* Streaming stores are in no order with others until a fence; one for all pieces of a call. */
static void stream_end(const qk_quant *quant) {
    (void)quant;
#if defined(__SSE2__)
    if (quant->stream) _mm_sfence();
#endif
}

void qk_quantize(const qk_quant *quant, const float *scales, const int32_t *zps, const void *src, void *dst,
                 size_t first, size_t n) {
    const job j = {quant, scales, zps, real_of(quant->real), stored_of(quant->stored)};
    const qk_quant_row *row = quant->row;
    const size_t src_bits = real_bits(j.real), dst_bits = qk_stored_bits(j.stored);
    const bool wide = j.real == QK_F32, is_4bit = dst_bits == 4;
    if ((wide && !is_4bit) || (row->q_runs[j.real][j.stored] && is_runs(&j))) {
        quantize_pieces(&j, j.real, j.stored, element(src, src_bits, first), (void *)element(dst, dst_bits, first),
                        first, n, quant->stream);
        stream_end(quant);
        return;
    }
    const bool is_signed = qk_stored_signed(j.stored);
    const int stored = is_4bit ? (is_signed ? QK_S8 : QK_U8) : j.stored;
    float reals[CHUNK];
    uint8_t bytes[CHUNK];
    for (size_t end = first + n; first < end; first += CHUNK) {
        size_t m = least(CHUNK, end - first);
        const void *s = element(src, src_bits, first);
        void *d = (void *)element(dst, dst_bits, first);
        if (!wide) {
            (j.real == QK_F16 ? row->f32_of_f16 : row->f32_of_bf16)(s, reals, m);
            s = reals;
        }
        quantize_pieces(&j, QK_F32, stored, s, is_4bit ? bytes : d, first, m, false);
        if (is_4bit) row->pack4(bytes, d, m, is_signed);
    }
}

void qk_dequantize(const qk_quant *quant, const float *scales, const int32_t *zps, const void *src, void *dst,
                   size_t first, size_t n) {
    const job j = {quant, scales, zps, real_of(quant->real), stored_of(quant->stored)};
    const qk_quant_row *row = quant->row;
    const size_t src_bits = qk_stored_bits(j.stored), dst_bits = real_bits(j.real);
    const bool wide = j.real == QK_F32, is_4bit = src_bits == 4;
    if ((wide && !is_4bit) || (row->dq_runs[j.real][j.stored] && is_runs(&j))) {
        dequantize_pieces(&j, j.real, j.stored, element(src, src_bits, first), (void *)element(dst, dst_bits, first),
                          first, n, quant->stream);
        stream_end(quant);
        return;
    }
    const bool is_signed = qk_stored_signed(j.stored);
    const int stored = is_4bit ? (is_signed ? QK_S8 : QK_U8) : j.stored;
    float reals[CHUNK];
    uint8_t bytes[CHUNK];
    for (size_t end = first + n; first < end; first += CHUNK) {
        size_t m = least(CHUNK, end - first);
        const void *s = element(src, src_bits, first);
        void *d = (void *)element(dst, dst_bits, first);
        if (is_4bit) {
            row->unpack4(s, bytes, m, is_signed);
            s = bytes;
        }
        dequantize_pieces(&j, QK_F32, stored, s, wide ? d : reals, first, m, wide && quant->stream);
        if (!wide) (j.real == QK_F16 ? row->f16_of_f32 : row->bf16_of_f32)(reals, d, m);
    }
    if (wide) stream_end(quant);
}

void qk_quant_table(const qk_x8 *src, void (*map)(float *values, size_t n, void *context), void *context,
                    const qk_x8 *dst, qk_quant_order order, uint8_t table[256]) {
    const qk_quant_row *row = choose();
    float values[256];
    uint8_t bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    row->dq_runs[QK_F32][stored_of(src->dtype)](bytes, values, 1, 256, &src->scale, &src->zp, false);
    if (map) map(values, 256, context);
    row->q_runs[QK_F32][stored_of(dst->dtype)](values, table, 1, 256, &dst->scale, &dst->zp, order, false);
}

void qk_minmax_f32(const float *src, size_t n, float *min_out, float *max_out) {
    choose()->minmax(src, n, min_out, max_out);
}
