/* Averages in integers: made from the formula in floats, and kept only where they give its bytes for every sum there is. */
#include "kernels/pool/pool_row.h"

#include <math.h>

enum { MAX_SUM = QK_POOL_GRID_TAPS * 255 };

/* The formula for the sums 0 ... taps * 255 of bytes as 0 ... 255; results likewise. */
typedef struct truth {
    int32_t n_sums;
    double ratio, add; /* result = sum * ratio + add, but for rounding */
    uint8_t results[MAX_SUM + 1];
} truth;

static int32_t flip_of(qdq_dtype d) {
    return d == QDQ_DTYPE_S8 ? 128 : 0;
}

static void find_truth(const qk_pool *p, const qk_pool_quant *q, int32_t taps, int32_t counted, truth *out) {
    const int32_t zp = q->src_zp + flip_of(p->src);
    const qk_pool_end end = {taps * zp,       (float)((double)q->src_scale / (double)counted),
                             q->dst_scale,    q->dst_zp,
                             q->add_zp_first, p->dst == QDQ_DTYPE_S8};
    int32_t sums[MAX_SUM + 1];
    out->n_sums = taps * 255 + 1;
    out->ratio = (double)q->src_scale / (double)q->dst_scale / counted;
    out->add = q->dst_zp + flip_of(p->dst) - out->ratio * taps * zp;
    for (int32_t s = 0; s < out->n_sums; s++)
        sums[s] = s;
    p->row->finish(sums, out->results, (size_t)out->n_sums, &end);
    for (int32_t s = 0; s < out->n_sums; s++)
        out->results[s] ^= (uint8_t)flip_of(p->dst);
}

/* The ties are seen where they are, and then all is compared. */
static bool make_fixed(const truth *t, int32_t taps, qk_pool_mean *m) {
    m->factor = (uint16_t)lrint(t->ratio * 65536.0);
    m->add = (int32_t)lrint(t->add * 65536.0);
    m->near = (uint16_t)(taps * 255 / 2 + 2); /* what the rounded factor may be off */
    for (int32_t s = 0; s < t->n_sums; s++) {
        const int64_t fixed = (int64_t)s * m->factor + m->add, whole = fixed >> 16, part = fixed & 0xffff;
        if (part < 0x8000 - m->near || part > 0x8000 + m->near || whole < 0 || whole > 255) continue;
        if (t->results[s] > whole) m->ties[whole / 8] |= (uint8_t)(1 << whole % 8);
    }
    for (int32_t s = 0; s < t->n_sums; s++)
        if ((t->results[s] ^ (m->to_signed ? 0x80 : 0)) != qk_pool_mean_of(m, (uint32_t)s)) return false;
    return true;
}

static bool make_plain(const truth *t, qk_pool_mean *m) {
    const double add = floor((t->add + 0.5) / t->ratio);
    if (!(add >= 0.0 && add < 32768.0)) return false;
    for (int k = 0; k < 4; k++) {
        m->plain_factor = (uint16_t)((uint32_t)(t->ratio * 65536.0) + (k % 2 ? 0 : 1));
        m->plain_add = (uint16_t)(add + k / 2);
        int32_t s = 0;
        while (s < t->n_sums && (uint32_t)(s + m->plain_add) * m->plain_factor >> 16 == t->results[s])
            s++;
        if (s == t->n_sums) return true;
    }
    return false;
}

static bool make_quarter(const truth *t, qk_pool_mean *m) {
    qk_pool_mean q = *m;
    for (int i = 0; i < 32; i++)
        q.ties[i] = 0;
    for (int32_t up = 1; up <= 255; up++)
        if (t->results[4 * up - 2] == up - 1) q.ties[up / 8] |= (uint8_t)(1 << up % 8);
    for (int32_t s = 0; s < t->n_sums; s++) {
        const int32_t up = (s + 3) / 4, less = 4 * up - s;
        if (t->results[s] != up - (less > 2 || (less == 2 && (q.ties[up / 8] >> up % 8 & 1)))) return false;
    }
    *m = q;
    return true;
}

qk_pool_mean qk_pool_mean_make(const qk_pool *p, const qk_pool_quant *q, int32_t taps, int32_t counted,
                               qk_pool_mean_form best) {
    const qk_pool_mean none = {0};
    if (taps < 1 || taps > QK_POOL_GRID_TAPS || counted < taps) return none;
    truth t;
    find_truth(p, q, taps, counted, &t);
    /* the product of 16 bits, and what is a whole number of 15 bits with its sign */
    if (!(t.ratio >= 0x1p-6 && t.ratio < 0.999) || !(fabs(t.add) < 16000.0)) return none;
    qk_pool_mean m = {.form = QK_POOL_FIXED, .to_signed = flip_of(p->dst) != 0};
    if (best >= QK_POOL_QUARTER && taps == 4 && counted == 4 && make_quarter(&t, &m))
        m.form = QK_POOL_QUARTER;
    else if (best >= QK_POOL_PLAIN && make_plain(&t, &m))
        m.form = QK_POOL_PLAIN;
    else if (!make_fixed(&t, taps, &m))
        return none;
    return m;
}

void qk_pool_mean_table(const qk_pool *p, const qk_pool_quant *q, int32_t taps, int32_t counted, uint8_t *table) {
    truth t;
    find_truth(p, q, taps, counted, &t);
    for (int32_t s = 0; s < t.n_sums; s++)
        table[s] = t.results[s] ^ (uint8_t)flip_of(p->dst);
}
