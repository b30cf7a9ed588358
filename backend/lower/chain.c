#include "lower/chain.h"

#include "base/dtype.h"
#include "lower/single.h"

#include <math.h>
#include <string.h>

/* ---- elementwise algorithms, read from the op table -------------------------------------------------------------- */

enum { QDQI_DNNL_NONE = -1 };

bool qdqi_unary_alg(const qdqi_op *op, qdqi_dnnl_alg *alg, float *alpha, float *beta) {
    float a, b;
    int found = QDQI_DNNL_NONE;
    if ((op->schema->flags & QDQI_F_UNARY) == 0) return false;
    qdqi_op_unary_ab(op, &a, &b);
    switch ((int)op->kind) {
#define QDQI_UNARY(id, name, origin, attr_a, attr_b, formula, dnnl, dnnl_alpha, dnnl_beta, attrs)                      \
    case QDQI_OP_##id:                                                                                                 \
        found = (int)QDQI_DNNL_##dnnl;                                                                                 \
        *alpha = dnnl_alpha;                                                                                           \
        *beta = dnnl_beta;                                                                                             \
        break;
#include "ir/unary.def"
#undef QDQI_UNARY
    default: break;
    }
    if (op->kind == QDQI_OP_GELU && a != 0.0f) found = (int)QDQI_DNNL_ELT_GELU_TANH;
    *alg = (qdqi_dnnl_alg)found;
    return found != QDQI_DNNL_NONE;
}

bool qdqi_binary_alg(const qdqi_op *op, qdqi_dnnl_alg *alg) {
    static const struct {
        qdqi_kind kind;
        qdqi_dnnl_alg alg;
    } rows[] = {{QDQI_OP_ADD, QDQI_DNNL_BIN_ADD},         {QDQI_OP_SUBTRACT, QDQI_DNNL_BIN_SUB},
                {QDQI_OP_MULTIPLY, QDQI_DNNL_BIN_MUL},    {QDQI_OP_DIVIDE, QDQI_DNNL_BIN_DIV},
                {QDQI_OP_MAXIMUM, QDQI_DNNL_BIN_MAX},     {QDQI_OP_MINIMUM, QDQI_DNNL_BIN_MIN},
                {QDQI_OP_GREATEREQUAL, QDQI_DNNL_BIN_GE}, {QDQI_OP_BIASADD, QDQI_DNNL_BIN_ADD}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].kind == op->kind) {
            *alg = rows[i].alg;
            return true;
        }
    return false;
}

/* ---- building the chain ------------------------------------------------------------------------------------------ */

static bool in_part(const qdqi_part *part, uint32_t op) {
    uint32_t lo = 0;
    for (; lo < part->n_ops; lo++)
        if (part->ops[lo] == op) return true;
    return false;
}

/* The axis of `q` after a reshape from `from` to `to`; false when its elements are no longer one dim. */
static bool reshaped_axis(const qdq_tensor_desc *from, const qdq_tensor_desc *to, qdqi_qparams *q) {
    if (q->gran == QDQI_GRAN_TENSOR) return true;
    if (q->gran == QDQI_GRAN_GROUP) return false;
    int64_t inner = 1, at = 1;
    for (int32_t d = q->axis + 1; d < from->ndims; d++)
        inner *= from->dims[d];
    for (int32_t d = to->ndims - 1; d >= 0; d--) {
        if (at == inner && to->dims[d] == from->dims[q->axis]) {
            q->axis = d;
            return true;
        }
        at *= to->dims[d];
    }
    return false;
}

static bool is_cast(const qdqi_op *op) {
    return op->kind == QDQI_OP_TYPECAST || op->kind == QDQI_OP_CAST;
}

/* One op between a Dequantize and its reader, done on the integers' descriptor. False when they would have to move. */
static bool see_through(qdqi_lower *lw, const qdqi_op *op, qdq_tensor_desc *desc, qdqi_qparams *q) {
    const qdq_tensor_desc *to = &qdqi_lower_val(lw, op->out[0])->desc;
    if (is_cast(op)) return true;
    if (op->kind == QDQI_OP_STATICTRANSPOSE) {
        const qdq_tensor_desc from = *desc;
        int32_t perm[QDQ_MAX_NDIMS], axis = 0;
        if (q->gran == QDQI_GRAN_GROUP || !qdqi_transpose_perm(op, from.ndims, perm)) return false;
        for (int32_t i = 0; i < from.ndims; i++) {
            desc->dims[i] = from.dims[perm[i]];
            desc->strides[i] = from.strides[perm[i]];
            if (perm[i] == q->axis) axis = i;
        }
        q->axis = axis;
        return true;
    }
    if (qdqi_same_dims(desc, to)) return true;
    if (!qdqi_is_dense(desc) || !reshaped_axis(desc, to, q)) return false;
    desc->ndims = to->ndims;
    memcpy(desc->dims, to->dims, sizeof desc->dims);
    qdqi_set_dense(desc);
    return true;
}

enum { MAX_VIEWS = 4 };

/* The integers behind views: the same bytes as a value of lowering's own, when the views leave them in place. */
static qdq_status view_integers(qdqi_lower *lw, const uint32_t *views, uint32_t n, qdqi_operand *out, bool *done,
                                qdq_error *err) {
    *done = false;
    QDQI_TRY(qdqi_lower_make(lw, out->q_value, err));
    const qdq_tensor_desc base = qdqi_lower_val(lw, out->q_value)->desc;
    qdq_tensor_desc desc = base;
    for (uint32_t i = n; i-- > 0;)
        if (!see_through(lw, &lw->graph->ops[views[i]], &desc, &out->q)) return QDQ_OK;
    *done = true;
    if (qdqi_same_dims(&base, &desc) && qdqi_same_strides(&base, &desc)) return QDQ_OK;
    *done = qdq_dtype_bits(base.dtype) == 8;
    if (!*done) return QDQ_OK;
    const uint32_t from = out->q_value;
    QDQI_TRY(qdqi_lower_new_value(lw, &desc, &out->q_value, err));
    return qdqi_lower_see(lw, out->q_value, from, err);
}

qdq_status qdqi_chain_operand(qdqi_lower *lw, const qdqi_part *part, uint32_t value, qdqi_operand *out,
                              qdq_error *err) {
    *out = (qdqi_operand){.value = value, .dq_op = QDQI_NONE, .q_value = QDQI_NONE};
    uint32_t views[MAX_VIEWS], n_views = 0;
    uint32_t at = value;
    while (at != QDQI_NONE) {
        const uint32_t producer = lw->graph->values[at].producer;
        if (producer == QDQI_NONE || producer == part->root || !in_part(part, producer)) return QDQ_OK;
        const qdqi_op *op = &lw->graph->ops[producer];
        if ((op->schema->flags & QDQI_F_DEQUANTIZE) != 0) {
            qdqi_operand found = *out;
            const qdq_status st = qdqi_qparams_of(lw, op, &found.q, err);
            if (st == QDQ_E_UNSUPPORTED) return QDQ_OK; /* stays a float operand, computed by its own step */
            QDQI_TRY(st);
            found.q_value = op->in[0];
            bool done;
            QDQI_TRY(view_integers(lw, views, n_views, &found, &done, err));
            found.dq_op = producer;
            if (done) *out = found;
            return QDQ_OK;
        }
        const bool view =
            is_cast(op) || op->kind == QDQI_OP_STATICTRANSPOSE || (op->schema->flags & QDQI_F_SHAPE_ONLY) != 0;
        if (!view || n_views == MAX_VIEWS) return QDQ_OK;
        views[n_views++] = producer;
        at = op->in[0];
    }
    return QDQ_OK;
}

/* x * sigmoid(x) */
static void join_swish(qdqi_chain *chain) {
    for (uint32_t i = 0; i + 1 < chain->n_links; i++) {
        qdqi_link *a = &chain->links[i], *b = &chain->links[i + 1];
        if (a->binary || !a->has_alg || a->alg != QDQI_DNNL_ELT_LOGISTIC || !b->self || b->alg != QDQI_DNNL_BIN_MUL)
            continue;
        a->alg = QDQI_DNNL_ELT_SWISH;
        a->alpha = 1.0f;
        a->beta = 0.0f;
        a->op = b->op;
        memmove(b, b + 1, (chain->n_links - i - 2) * sizeof *b);
        chain->n_links--;
    }
}

/* Whether an operand is an earlier result of the chain itself. */
static bool made_by_chain(const qdq_graph *g, const qdqi_part *part, const qdqi_chain *chain, uint32_t value) {
    const uint32_t producer = g->values[value].producer;
    if (producer == QDQI_NONE) return false;
    if (producer == part->root) return true;
    for (uint32_t i = 0; i < chain->n_links; i++)
        if (chain->links[i].op == producer) return true;
    return false;
}

static bool reads(const qdqi_op *op, uint32_t value) {
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i] == value) return true;
    return false;
}

static bool reads_result(const qdq_graph *g, const qdqi_part *part, const qdqi_chain *chain, const qdqi_op *op) {
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i] != QDQI_NONE && made_by_chain(g, part, chain, op->in[i])) return true;
    return false;
}

/* (x - mean) / sqrt(variance + epsilon) * gamma + beta, per channel x * factor + shift when all four are constant. */
static qdq_status read_batchnorm(qdqi_lower *lw, const qdqi_part *part, const qdqi_op *op, uint32_t cur,
                                 qdqi_link *link, bool *fits, qdq_error *err) {
    const qdq_tensor_desc *dst = &qdqi_lower_val(lw, op->out[0])->desc;
    const void *data[4];
    qdq_dtype dtypes[4];
    if (op->in[0] != cur || dst->ndims < 2) return QDQ_OK;
    link->axis = qdqi_op_str_is(op, QDQI_A_DATA_FORMAT, "NXC") ? dst->ndims - 1 : 1;
    const int64_t n = dst->dims[link->axis];
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t producer = lw->graph->values[op->in[i + 1]].producer;
        if (producer != QDQI_NONE && in_part(part, producer)) {
            const qdqi_op *dq = &lw->graph->ops[producer];
            const uint32_t from = dq->n_in != 0 ? dq->in[0] : QDQI_NONE;
            if (from != QDQI_NONE && qdqi_lower_val(lw, from)->data != NULL)
                QDQI_TRY(qdqi_lower_make(lw, op->in[i + 1], err));
        }
        const qdqi_lval *lv = qdqi_lower_val(lw, op->in[i + 1]);
        if (lv->data == NULL || !qdqi_is_dense(&lv->desc) || qdqi_n_elems(&lv->desc) != n) return QDQ_OK;
        data[i] = lv->data;
        dtypes[i] = lv->desc.dtype;
    }
    float *factors = qdqi_arena_alloc(&lw->arena, (size_t)(n < 1 ? 1 : n), 2 * sizeof *factors);
    if (factors == NULL) return QDQI_NO_MEMORY(err);
    const double epsilon = (double)qdqi_op_f32(op, QDQI_A_EPSILON);
    for (int64_t i = 0; i < n; i++) {
        const double factor =
            qdqi_load_f64(data[0], dtypes[0], i) / sqrt(qdqi_load_f64(data[3], dtypes[3], i) + epsilon);
        factors[i] = (float)factor;
        factors[n + i] = (float)(qdqi_load_f64(data[1], dtypes[1], i) - qdqi_load_f64(data[2], dtypes[2], i) * factor);
    }
    link->factors = factors;
    link->shifts = factors + n;
    *fits = true;
    return QDQ_OK;
}

/* One elementwise op as a link; `fits` false: not of a form that a primitive could take. */
static qdq_status read_link(qdqi_lower *lw, const qdqi_part *part, const qdqi_chain *chain, const qdqi_op *op,
                            uint32_t cur, uint32_t before, qdqi_link *link, bool *fits, qdq_error *err) {
    *fits = false;
    if (op->kind == QDQI_OP_BATCHNORMINFERENCE) return read_batchnorm(lw, part, op, cur, link, fits, err);
    if (op->n_in == 1) {
        *fits = link->has_alg = op->in[0] == cur && qdqi_unary_alg(op, &link->alg, &link->alpha, &link->beta);
        return QDQ_OK;
    }
    const bool prelu = op->kind == QDQI_OP_PRELU && op->in[0] == cur;
    if (prelu) link->alg = QDQI_DNNL_BIN_PRELU;
    if (op->n_in != 2 || op->in[0] == op->in[1] || !reads(op, cur) || (!prelu && !qdqi_binary_alg(op, &link->alg)))
        return QDQ_OK;
    link->binary = link->has_alg = true;
    link->swapped = op->in[0] != cur;
    const uint32_t other = link->swapped ? op->in[0] : op->in[1];
    link->self = other == before && before != QDQI_NONE;
    if (!link->self && made_by_chain(lw->graph, part, chain, other)) return QDQ_OK;
    *fits = true;
    return link->self ? QDQ_OK : qdqi_chain_operand(lw, part, other, &link->other, err);
}

/* The ops behind the links must find all that they read: the primitive ends at the earliest result that one of them needs. */
static void cut(const qdqi_lower *lw, const qdqi_part *part, qdqi_chain *chain) {
    const qdq_graph *g = lw->graph;
    for (bool again = true; again;) {
        again = false;
        for (uint32_t n = 0; n < chain->n_links && !again; n++) {
            const uint32_t value = qdqi_chain_value_after(lw, chain, n);
            for (uint32_t u = 0; u < g->values[value].n_uses; u++) {
                const uint32_t user = g->values[value].uses[u].op;
                bool link = false;
                for (uint32_t i = 0; i < chain->n_links; i++)
                    link = link || chain->links[i].op == user;
                const qdqi_op *op = &g->ops[user];
                if (!link && !is_cast(op) && in_part(part, user)) again = true;
            }
            if (again) chain->n_links = n;
        }
    }
}

static bool is_move(const qdqi_op *op) {
    return (op->kind == QDQI_OP_STATICTRANSPOSE || op->kind == QDQI_OP_MAXPOOL ||
            (op->schema->flags & QDQI_F_SHAPE_ONLY) != 0) &&
           op->n_in <= QDQI_CHAIN_OPERANDS;
}

/* ops[k…] reshape and transpose the value `cur` and end in a Quantize of one scale: then the primitive may quantize, and the
 * integers are moved instead. n_moves stays 0 when that is not so. */
static qdq_status read_moves(qdqi_lower *lw, const qdqi_part *part, qdqi_chain *chain, uint32_t k, uint32_t cur,
                             qdq_error *err) {
    uint32_t at = cur, n = 0;
    bool pools = false;
    for (; k + 1 < part->n_ops; k++) {
        const qdqi_op *op = &lw->graph->ops[part->ops[k]];
        if (op->in[0] != at || n == QDQI_CHAIN_MOVES || !(is_move(op) || is_cast(op))) return QDQ_OK;
        if (is_move(op)) chain->moves[n++] = part->ops[k];
        pools = pools || op->kind == QDQI_OP_MAXPOOL;
        at = op->out[0];
    }
    const qdqi_op *q_op = &lw->graph->ops[part->ops[k]];
    if ((q_op->schema->flags & QDQI_F_QUANTIZE) == 0 || q_op->in[0] != at) return QDQ_OK;
    qdqi_qparams q;
    const qdq_status st = qdqi_qparams_of(lw, q_op, &q, err);
    if (st == QDQ_E_UNSUPPORTED || (st == QDQ_OK && (q.gran != QDQI_GRAN_TENSOR || qdq_dtype_bits(q.stored) != 8)))
        return QDQ_OK;
    QDQI_TRY(st);
    /* the largest of some values has the largest of their integers */
    if (pools && (!qdqi_is_x8(q.stored) || !qdqi_qparams_is_const_tensor(&q) || !qdqi_qparams_positive(&q)))
        return QDQ_OK;
    qdq_tensor_desc desc = qdqi_lower_val(lw, cur)->desc;
    desc.dtype = q.stored;
    qdqi_set_dense(&desc);
    chain->q = q;
    chain->q_op = part->ops[k];
    chain->n_moves = n;
    return qdqi_lower_new_value(lw, &desc, &chain->out_value, err);
}

/* The first op of the next few with which an elementwise idiom of `cur` ends. */
static bool find_idiom(qdqi_lower *lw, const qdqi_part *part, uint32_t k, uint32_t cur, uint32_t ops[QDQI_IDIOM_OPS],
                       uint32_t *n_ops, qdqi_link *link) {
    if (lw->graph->values[cur].n_uses < 2) return false;
    for (uint32_t i = k; i < part->n_ops && i < k + QDQI_IDIOM_OPS; i++) {
        uint32_t n;
        if (!qdqi_idiom_read(lw, cur, &lw->graph->ops[part->ops[i]], ops, &n, link)) continue;
        bool inside = true;
        for (uint32_t o = 0; o < n; o++)
            inside = inside && in_part(part, ops[o]);
        *n_ops = inside ? n : *n_ops;
        return inside;
    }
    return false;
}

qdq_status qdqi_chain_build(qdqi_lower *lw, const qdqi_part *part, qdqi_chain *chain, qdq_error *err) {
    const qdq_graph *g = lw->graph;
    *chain = (qdqi_chain){.root = part->root, .q_op = QDQI_NONE, .scaled = QDQI_NONE};
    const qdqi_op *root = &g->ops[part->root];
    if (qdqi_is_integer_root(root)) {
        const uint32_t before_root = g->values[root->in[0]].producer; /* quantized for it alone */
        if (before_root != QDQI_NONE && in_part(part, before_root))
            QDQI_TRY(qdqi_lower_dynamic_quantize(lw, &g->ops[before_root], err));
        QDQI_TRY(qdqi_chain_integer_root(lw, chain, err));
    } else if (root->n_in > QDQI_CHAIN_OPERANDS) {
        return qdqi_refuse(err, "chain", "too_many_operands");
    } else {
        chain->n_operands = root->n_in;
    }
    for (uint32_t i = 0; i < chain->n_operands && !qdqi_is_integer_root(root); i++)
        QDQI_TRY(qdqi_chain_operand(lw, part, root->in[i], &chain->operands[i], err));
    uint32_t cur = root->out[0], before = QDQI_NONE, k = 0;
    while (part->ops[k] != part->root)
        k++;
    uint32_t idiom[QDQI_IDIOM_OPS], n_idiom = 0;
    for (k++; k < part->n_ops; k++) {
        const uint32_t index = part->ops[k];
        const qdqi_op *op = &g->ops[index];
        bool taken = false;
        for (uint32_t i = 0; i < n_idiom; i++)
            taken = taken || idiom[i] == index;
        if (taken) continue;
        /* what is not downstream of the root belongs to an operand: made when the operand is read */
        if (!reads(op, cur) && !reads_result(g, part, chain, op)) continue;
        if (is_cast(op) && op->in[0] == cur &&
            qdqi_dtype_is_float(qdqi_lower_val(lw, op->out[0])->desc.dtype)) { /* rounds only where a result leaves */
            cur = op->out[0];
            continue;
        }
        if ((op->schema->flags & QDQI_F_QUANTIZE) != 0 && op->in[0] == cur && k + 1 == part->n_ops) {
            const qdq_status st = qdqi_qparams_of(lw, op, &chain->q, err);
            if (st != QDQ_OK && st != QDQ_E_UNSUPPORTED) return st;
            if (st == QDQ_OK) chain->q_op = index;
            chain->truncated = st != QDQ_OK;
            break;
        }
        if (is_move(op) && op->in[0] == cur) {
            QDQI_TRY(read_moves(lw, part, chain, k, cur, err));
            chain->truncated = chain->n_moves == 0;
            break;
        }
        qdqi_link link = {.op = index};
        bool fits = false;
        if (chain->n_links < QDQI_CHAIN_MAX && reads(op, cur) && find_idiom(lw, part, k, cur, idiom, &n_idiom, &link)) {
            chain->links[chain->n_links++] = link;
            before = QDQI_NONE;
            cur = g->ops[link.op].out[0];
            continue;
        }
        if (chain->n_links < QDQI_CHAIN_MAX) QDQI_TRY(read_link(lw, part, chain, op, cur, before, &link, &fits, err));
        chain->truncated = !fits;
        if (!fits) break;
        chain->links[chain->n_links++] = link;
        before = cur;
        cur = op->out[0];
    }
    join_swish(chain);
    if (qdqi_is_integer_root(root)) qdqi_chain_take_scales(lw, part, chain);
    for (uint32_t i = 0; i < chain->n_links; i++)
        if (chain->links[i].self) { /* x * f(x) of another kind: x must exist, so the primitive ends there */
            chain->n_links = i;
            chain->truncated = true;
            chain->q_op = chain->q_op == chain->root ? chain->root : QDQI_NONE;
        }
    if (chain->truncated) cut(lw, part, chain);
    const qdqi_op *last = &g->ops[part->ops[part->n_ops - 1]];
    if (chain->truncated) chain->n_moves = 0;
    chain->final_value = last->out[0];
    if (chain->n_moves == 0) chain->out_value = chain->final_value;
    return QDQ_OK;
}

qdq_status qdqi_chain_finish(qdqi_lower *lw, const qdqi_chain *chain, qdq_error *err) {
    uint32_t at = chain->out_value;
    if (chain->n_moves == 0 || qdqi_lower_val(lw, at)->buf == QDQI_NO_BUF)
        return qdqi_lower_make(lw, chain->final_value, err);
    for (uint32_t i = 0; i < chain->n_moves; i++) {
        const qdqi_op *op = &lw->graph->ops[chain->moves[i]];
        uint32_t in[QDQI_CHAIN_OPERANDS], to = chain->final_value;
        memcpy(in, op->in, op->n_in * sizeof *in);
        in[0] = at;
        if (i + 1 < chain->n_moves) {
            qdq_tensor_desc desc = qdqi_lower_val(lw, op->out[0])->desc;
            desc.dtype = chain->q.stored;
            QDQI_TRY(qdqi_lower_new_value(lw, &desc, &to, err));
        }
        if (op->kind == QDQI_OP_MAXPOOL)
            QDQI_TRY(qdqi_lower_pool_integers(lw, op, at, to, &chain->q, err));
        else
            QDQI_TRY(qdqi_lower_move(lw, op, in, &to, err));
        at = to;
    }
    return QDQ_OK;
}

qdq_status qdqi_operand_as_float(qdqi_lower *lw, const qdqi_operand *operand, qdq_error *err) {
    return operand->value == QDQI_NONE ? QDQ_OK : qdqi_lower_make(lw, operand->value, err);
}

/* ---- post-ops ---------------------------------------------------------------------------------------------------- */

static bool add_post(qdqi_posts *p, qdqi_dnnl_post post) {
    if (p->attr->n_posts == QDQI_DNNL_MAX_POSTS) return false;
    p->attr->posts[p->attr->n_posts++] = post;
    return true;
}

static bool add_eltwise(qdqi_posts *p, qdqi_dnnl_alg alg, float alpha, float beta) {
    return add_post(p, (qdqi_dnnl_post){.alg = alg, .alpha = alpha, .beta = beta});
}

static uint32_t room(const qdqi_posts *p) {
    return QDQI_DNNL_MAX_POSTS - p->attr->n_posts;
}

/* The operand's dims right-aligned to dst, in md order. False when the primitive could not broadcast it. */
static bool operand_md(const qdqi_posts *p, const qdq_tensor_desc *desc, qdqi_dnnl_md *md) {
    qdqi_md_of(desc, md);
    if (md->ndims > p->dst->ndims && p->dst->ndims != 0) {
        return false;
    }
    qdqi_md_unsqueeze_front(md, p->dst->ndims == 0 ? 1 : p->dst->ndims);
    if (p->perm != NULL) {
        const qdqi_dnnl_md plain = *md;
        for (int32_t i = 0; i < p->dst->ndims; i++) {
            md->dims[i] = plain.dims[p->perm[i]];
            md->strides[i] = plain.strides[p->perm[i]];
        }
    }
    for (int32_t i = 0; i < p->dst->ndims; i++) {
        const int64_t d = p->dst->dims[p->perm != NULL ? p->perm[i] : i];
        if (md->dims[i] != d && md->dims[i] != 1) return false;
    }
    return true;
}

static bool is_full(const qdqi_posts *p, const qdq_tensor_desc *desc) {
    return qdqi_same_dims(p->full, desc) && qdqi_n_elems(desc) > 1;
}

/* ...xMxN seen as [rows, N]: only operands that are full, one row or one value keep their meaning. */
static bool collapse(const qdqi_posts *p, qdq_tensor_desc *desc) {
    const int64_t n = qdqi_n_elems(desc);
    const int64_t rows = is_full(p, desc) ? p->dst->dims[0] : 1;
    const int64_t last = desc->ndims == 0 ? 1 : desc->dims[desc->ndims - 1];
    if (rows == 1 && n != last) return false;
    desc->ndims = 2;
    desc->dims[0] = rows;
    desc->dims[1] = last;
    qdqi_set_dense(desc);
    return true;
}

/* Read the second operand of a binary post-op; a full-size one must have the layout that the primitive writes. */
static qdq_status operand_buf(qdqi_lower *lw, const qdqi_posts *p, uint32_t value, qdqi_dnnl_md *md, qdqi_buf *buf,
                              qdq_error *err) {
    qdq_tensor_desc want = qdqi_lower_val(lw, value)->desc;
    if (is_full(p, &want))
        memcpy(want.strides, p->full->strides, sizeof want.strides);
    else
        qdqi_set_dense(&want);
    qdq_tensor_desc seen = want;
    if (p->full != p->dst && !collapse(p, &seen)) return qdqi_refuse(err, "post_op", "broadcast");
    if (!operand_md(p, &seen, md)) return qdqi_refuse(err, "post_op", "broadcast");
    return qdqi_lower_read_as(lw, value, &want, buf, err);
}

qdq_status qdqi_posts_operand(qdqi_lower *lw, qdqi_posts *p, qdqi_dnnl_alg alg, uint32_t value, qdq_error *err) {
    qdqi_dnnl_post post = {.alg = alg};
    qdqi_buf buf;
    if (room(p) < 1) return qdqi_refuse(err, "post_op", "too_many");
    QDQI_TRY(operand_buf(lw, p, value, &post.operand, &buf, err));
    qdqi_args_add(p->args, (qdqi_dnnl_arg)(QDQI_DNNL_POST_OP + (int)p->attr->n_posts), buf);
    (void)add_post(p, post);
    return QDQ_OK;
}

void qdqi_bias_add_desc(const qdqi_op *op, const qdq_tensor_desc *dst, qdq_tensor_desc *desc) {
    if (op->kind != QDQI_OP_BIASADD && op->kind != QDQI_OP_PRELU) return;
    if (desc->ndims != 1 || !qdqi_op_str_is(op, QDQI_A_DATA_FORMAT, "NCX")) return;
    const int64_t c = desc->dims[0];
    desc->ndims = dst->ndims;
    for (int32_t i = 0; i < dst->ndims; i++)
        desc->dims[i] = i == 1 ? c : 1;
    qdqi_set_dense(desc);
}

static qdq_status append_binary(qdqi_lower *lw, qdqi_posts *p, const qdqi_link *link, qdq_error *err) {
    const qdqi_op *op = &lw->graph->ops[link->op];
    const qdqi_operand *other = &link->other;
    const bool add = link->alg == QDQI_DNNL_BIN_ADD || (link->alg == QDQI_DNNL_BIN_SUB && !link->swapped);
    /* (r - z) * s added to x is ((x/s - z) + r) * s: the residual is read as stored, never written as f32 */
    if (add && other->dq_op != QDQI_NONE && qdqi_qparams_is_const_tensor(&other->q) &&
        (other->q.stored == QDQ_DTYPE_U8 || other->q.stored == QDQ_DTYPE_S8) &&
        qdqi_lower_val(lw, other->q_value)->data == NULL && room(p) >= 3) {
        const float s = other->q.scales[0];
        const float sign = link->alg == QDQI_DNNL_BIN_SUB ? -1.0f : 1.0f;
        const float s1 = sign * s;
        if (isfinite(1.0f / s1)) {
            (void)add_eltwise(p, QDQI_DNNL_ELT_LINEAR, 1.0f / s1, -(float)qdqi_qparams_zp0(&other->q));
            QDQI_TRY(qdqi_posts_operand(lw, p, QDQI_DNNL_BIN_ADD, other->q_value, err));
            (void)add_eltwise(p, QDQI_DNNL_ELT_LINEAR, s1, 0.0f);
            return QDQ_OK;
        }
    }
    if (room(p) < 2) return qdqi_refuse(err, "post_op", "too_many");
    QDQI_TRY(qdqi_operand_as_float(lw, other, err));
    qdqi_dnnl_post post = {.alg = link->alg};
    if (link->swapped) {
        if (link->alg == QDQI_DNNL_BIN_SUB) { /* o - x = -x + o */
            (void)add_eltwise(p, QDQI_DNNL_ELT_LINEAR, -1.0f, 0.0f);
            post.alg = QDQI_DNNL_BIN_ADD;
        } else if (link->alg == QDQI_DNNL_BIN_DIV) { /* o / x = x^-1 * o */
            (void)add_eltwise(p, QDQI_DNNL_ELT_POW, 1.0f, -1.0f);
            post.alg = QDQI_DNNL_BIN_MUL;
        } else if (link->alg == QDQI_DNNL_BIN_GE) {
            return qdqi_refuse(err, "post_op", "swapped_compare");
        }
    }
    qdqi_buf buf;
    qdqi_lval *lv = qdqi_lower_val(lw, other->value);
    if (op->kind == QDQI_OP_BIASADD || op->kind == QDQI_OP_PRELU) {
        qdq_tensor_desc desc = lv->desc;
        if (op->kind == QDQI_OP_PRELU && (desc.ndims > 1 || !qdqi_is_dense(&desc)))
            return qdqi_refuse(err, "post_op", "broadcast");
        qdqi_bias_add_desc(op, p->full, &desc);
        if (p->full != p->dst && !collapse(p, &desc)) return qdqi_refuse(err, "post_op", "broadcast");
        if (!operand_md(p, &desc, &post.operand)) return qdqi_refuse(err, "post_op", "broadcast");
        QDQI_TRY(qdqi_lower_read(lw, other->value, &buf, err));
    } else {
        QDQI_TRY(operand_buf(lw, p, other->value, &post.operand, &buf, err));
    }
    qdqi_args_add(p->args, (qdqi_dnnl_arg)(QDQI_DNNL_POST_OP + (int)p->attr->n_posts), buf);
    (void)add_post(p, post);
    return QDQ_OK;
}

qdq_status qdqi_posts_links(qdqi_lower *lw, qdqi_posts *p, const qdqi_chain *chain, uint32_t *n_done_out,
                            qdq_error *err) {
    uint32_t i = 0;
    for (; i < chain->n_links; i++) {
        const qdqi_link *link = &chain->links[i];
        /* the result must have the primitive's shape: a binary that widens it ends the chain */
        const qdqi_lval *out = qdqi_lower_val(lw, lw->graph->ops[link->op].out[0]);
        if (!qdqi_same_dims(&out->desc, p->full)) break;
        if (link->factors != NULL) {
            if (room(p) < 4) break;
            const int64_t n = p->full->dims[link->axis];
            const uint32_t n_posts = p->attr->n_posts, n_args = p->args->n;
            qdq_status st = qdqi_posts_channel(lw, p, QDQI_DNNL_BIN_MUL, link->factors, n, link->axis, NULL);
            if (st == QDQ_OK) st = qdqi_posts_channel(lw, p, QDQI_DNNL_BIN_ADD, link->shifts, n, link->axis, NULL);
            if (st == QDQ_E_UNSUPPORTED) {
                p->attr->n_posts = n_posts;
                p->args->n = n_args;
                break;
            }
            if (st != QDQ_OK)
                return qdqi_fail(err, st, "post-op of op %llu", (unsigned long long)lw->graph->ops[link->op].id);
            continue;
        }
        if (!link->has_alg || link->self) break;
        if (!link->binary) {
            if (room(p) < 3) break; /* leaves room for a per-channel quantize */
            (void)add_eltwise(p, link->alg, link->alpha, link->beta);
            continue;
        }
        const uint32_t n_posts = p->attr->n_posts, n_args = p->args->n;
        const qdq_status st = append_binary(lw, p, link, NULL);
        if (st == QDQ_E_UNSUPPORTED) {
            p->attr->n_posts = n_posts;
            p->args->n = n_args;
            break;
        }
        if (st != QDQ_OK)
            return qdqi_fail(err, st, "post-op of op %llu", (unsigned long long)lw->graph->ops[link->op].id);
    }
    *n_done_out = i;
    return QDQ_OK;
}

/* One f32 value per index of the quantization axis as a binary operand. */
static bool axis_md(const qdqi_posts *p, int32_t axis, int64_t n, qdqi_dnnl_md *md) {
    qdq_tensor_desc desc = {.dtype = QDQ_DTYPE_F32, .ndims = p->full->ndims, .layout = QDQ_LAYOUT_STRIDED};
    for (int32_t d = 0; d < desc.ndims; d++)
        desc.dims[d] = d == axis && n != 1 ? n : 1;
    qdqi_set_dense(&desc);
    if (p->full != p->dst && !collapse(p, &desc)) return false;
    return operand_md(p, &desc, md);
}

qdq_status qdqi_posts_channel(qdqi_lower *lw, qdqi_posts *p, qdqi_dnnl_alg alg, const float *values, int64_t n,
                              int32_t axis, qdq_error *err) {
    qdqi_dnnl_post post = {.alg = alg};
    qdqi_buf buf;
    if (room(p) < 1) return qdqi_refuse(err, "post_op", "too_many");
    if (!axis_md(p, axis, n, &post.operand)) return qdqi_refuse(err, "post_op", "axis");
    QDQI_TRY(qdqi_lower_const(lw, values, (size_t)n * sizeof *values, &buf, err));
    qdqi_args_add(p->args, (qdqi_dnnl_arg)(QDQI_DNNL_POST_OP + (int)p->attr->n_posts), buf);
    (void)add_post(p, post);
    return QDQ_OK;
}

/* 1 / scale where that is exact for all, or NULL. */
static const float *exact_reciprocals(qdqi_lower *lw, const qdqi_qparams *q) {
    if (q->scales == NULL) return NULL;
    float *r = qdqi_arena_alloc(&lw->arena, (size_t)q->n, sizeof *r);
    for (int64_t i = 0; r != NULL && i < q->n; i++) {
        int exponent;
        r[i] = 1.0f / q->scales[i];
        if (!isnormal(q->scales[i]) || !isnormal(r[i]) || fabsf(frexpf(q->scales[i], &exponent)) != 0.5f) return NULL;
    }
    return r;
}

qdq_status qdqi_posts_quantize(qdqi_lower *lw, qdqi_posts *p, const qdqi_qparams *q, bool as_attributes,
                               qdq_error *err) {
    if (q->gran == QDQI_GRAN_GROUP) return qdqi_refuse(err, "quantize", "grouped_dst");
    if (q->stored != QDQ_DTYPE_U8 && q->stored != QDQ_DTYPE_S8) return qdqi_refuse(err, "quantize", "dst_dtype");
    qdqi_buf buf;
    if (q->gran == QDQI_GRAN_TENSOR && as_attributes) {
        QDQI_TRY(qdqi_qparams_scale_buf(lw, q, &buf, err));
        p->attr->dst.has_scale = true;
        p->attr->dst.scale_dtype = QDQ_DTYPE_F32;
        qdqi_args_add(p->args, QDQI_DNNL_SCALE_DST, buf);
        if (q->has_zp) {
            QDQI_TRY(qdqi_qparams_zp_buf(lw, q, 0, &buf, err));
            p->attr->dst.has_zp = true;
            p->attr->dst.zp_dtype = QDQ_DTYPE_S32;
            qdqi_args_add(p->args, QDQI_DNNL_ZP_DST, buf);
        }
        return QDQ_OK;
    }
    /* divide and add as post-ops: per channel, this is what every implementation gets right */
    if (room(p) < 2) return qdqi_refuse(err, "quantize", "too_many_post_ops");
    if (q->has_zp && q->zps == NULL) return qdqi_refuse(err, "quantize", "runtime_zp_per_channel");
    const float *factors = exact_reciprocals(lw, q); /* a division costs more (and a linear post-op much more) */
    qdqi_dnnl_post post = {.alg = factors != NULL ? QDQI_DNNL_BIN_MUL : QDQI_DNNL_BIN_DIV};
    if (!axis_md(p, q->axis, q->n, &post.operand)) return qdqi_refuse(err, "quantize", "axis");
    if (factors != NULL)
        QDQI_TRY(qdqi_lower_const(lw, factors, (size_t)q->n * sizeof *factors, &buf, err));
    else
        QDQI_TRY(qdqi_qparams_scale_buf(lw, q, &buf, err));
    qdqi_args_add(p->args, (qdqi_dnnl_arg)(QDQI_DNNL_POST_OP + (int)p->attr->n_posts), buf);
    (void)add_post(p, post);
    if (!q->has_zp) return QDQ_OK;
    float *zps = qdqi_arena_alloc(&lw->arena, (size_t)q->n, sizeof *zps);
    if (zps == NULL) return QDQI_NO_MEMORY(err);
    for (int64_t i = 0; i < q->n; i++)
        zps[i] = (float)q->zps[i];
    return qdqi_posts_channel(lw, p, QDQI_DNNL_BIN_ADD, zps, q->n, q->axis, err);
}

/* ---- what did not fit into the primitive ------------------------------------------------------------------------- */

uint32_t qdqi_chain_value_after(const qdqi_lower *lw, const qdqi_chain *chain, uint32_t n_done) {
    const uint32_t op = n_done != 0                  ? chain->links[n_done - 1].op
                        : chain->scaled != QDQI_NONE ? chain->scaled
                                                     : chain->root;
    return lw->graph->ops[op].out[0];
}

uint32_t qdqi_chain_result(const qdqi_lower *lw, const qdqi_chain *chain) {
    return chain->truncated ? qdqi_chain_value_after(lw, chain, chain->n_links) : chain->out_value;
}
