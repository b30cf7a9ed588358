/* Two ways. Greedy by size is the tight one; where too many blocks live at once for it (its work is the number of pairs of
 * blocks that share a step), blocks are placed in the order of time, first fit, from a list of gaps.
 *
 * Greedy by size: the largest block first, each in the tightest gap that the already placed blocks of its lifetime leave.
 *
 * The placed blocks of a lifetime are found in two indexes, so that a long chain costs n log n and not n^2:
 *   cover   a segment tree over the steps; a block hangs at the few nodes that tile its lifetime: who lives at step t
 *   starts  per step, the blocks that begin there:                                               who begins in (a, b] */
#include "runtime/plan_impl.h"

#include "base/alloc.h"
#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

static const uint64_t MAX_PAIRS = (uint64_t)1 << 25;

typedef struct hook {
    uint32_t block, next;
} hook;

typedef struct placer {
    qdqi_lifetime *blocks;
    size_t n_leaves;  /* a power of two */
    uint32_t *cover;  /* [2 * n_leaves] heads into hooks */
    uint32_t *starts; /* [n_steps] heads, linked by next_start */
    uint32_t *next_start;
    hook *hooks;
    size_t n_hooks, hooks_capacity;
    uint32_t *near; /* [n]: the result of find_near */
} placer;

static bool add_hook(placer *p, size_t node, uint32_t block) {
    if (p->n_hooks == p->hooks_capacity) {
        if (p->n_hooks >= NONE / 2) return false;
        const size_t grown = p->hooks_capacity == 0 ? 256 : 2 * p->hooks_capacity;
        hook *hooks = qdqi_realloc_array(p->hooks, grown, sizeof *hooks);
        if (hooks == NULL) return false;
        p->hooks = hooks;
        p->hooks_capacity = grown;
    }
    p->hooks[p->n_hooks] = (hook){block, p->cover[node]};
    p->cover[node] = (uint32_t)p->n_hooks++;
    return true;
}

static bool add_placed(placer *p, uint32_t block) {
    const qdqi_lifetime *b = &p->blocks[block];
    p->next_start[block] = p->starts[b->first];
    p->starts[b->first] = block;
    size_t lo = p->n_leaves + b->first, hi = p->n_leaves + b->last + 1;
    for (; lo < hi; lo /= 2, hi /= 2) {
        if ((lo & 1) != 0 && !add_hook(p, lo++, block)) return false;
        if ((hi & 1) != 0 && !add_hook(p, --hi, block)) return false;
    }
    return true;
}

static size_t find_near(placer *p, const qdqi_lifetime *b) {
    size_t n = 0;
    for (size_t node = p->n_leaves + b->first; node > 0; node /= 2)
        for (uint32_t h = p->cover[node]; h != NONE; h = p->hooks[h].next)
            p->near[n++] = p->hooks[h].block;
    for (size_t s = (size_t)b->first + 1; s <= b->last; s++)
        for (uint32_t i = p->starts[s]; i != NONE; i = p->next_start[i])
            p->near[n++] = i;
    return n;
}

/* qsort has no argument for context: the blocks are sorted through small keys that carry what they are sorted by. */
typedef struct sort_key {
    size_t by;
    uint32_t block;
} sort_key;

static int ascending(const void *a, const void *b) {
    const sort_key *x = a, *y = b;
    if (x->by != y->by) return x->by < y->by ? -1 : 1;
    return x->block < y->block ? -1 : x->block > y->block;
}

static qdq_status place_one(placer *p, sort_key *keys, uint32_t block, size_t *arena_bytes, qdq_error *err) {
    qdqi_lifetime *b = &p->blocks[block];
    const size_t n = find_near(p, b);
    for (size_t i = 0; i < n; i++)
        keys[i] = (sort_key){p->blocks[p->near[i]].offset, p->near[i]};
    qsort(keys, n, sizeof *keys, ascending);
    size_t end = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        const qdqi_lifetime *o = &p->blocks[keys[i].block];
        if (o->offset > end && o->offset - end >= b->bytes && o->offset - end < best_gap) {
            best = end;
            best_gap = o->offset - end;
        }
        if (o->offset + o->bytes > end) end = o->offset + o->bytes;
    }
    b->offset = best != SIZE_MAX ? best : end;
    size_t top;
    if (!qdqi_add_size(b->offset, b->bytes, &top))
        return qdqi_fail(err, QDQ_E_OVERFLOW, "the temporaries of the plan do not fit into the address space");
    if (top > *arena_bytes) *arena_bytes = top;
    return add_placed(p, block) ? QDQ_OK : QDQI_NO_MEMORY(err);
}

static void fill_none(uint32_t *heads, size_t n) {
    for (size_t i = 0; i < n; i++)
        heads[i] = NONE;
}

static qdq_status place_by_size(qdqi_lifetime *blocks, size_t n, uint32_t n_steps, sort_key *order, size_t n_used,
                                size_t *arena_bytes, qdq_error *err) {
    placer p = {.blocks = blocks, .n_leaves = 1};
    while (p.n_leaves < n_steps)
        p.n_leaves *= 2;
    p.cover = qdqi_calloc(2 * p.n_leaves, sizeof *p.cover);
    p.starts = qdqi_calloc(n_steps, sizeof *p.starts);
    p.next_start = qdqi_calloc(n, sizeof *p.next_start);
    p.near = qdqi_calloc(n, sizeof *p.near);
    sort_key *keys = qdqi_calloc(n, sizeof *keys);
    qdq_status st = QDQ_OK;
    if (p.cover == NULL || p.starts == NULL || p.next_start == NULL || p.near == NULL || keys == NULL) {
        st = QDQI_NO_MEMORY(err);
        goto done;
    }
    fill_none(p.cover, 2 * p.n_leaves);
    fill_none(p.starts, n_steps);
    for (size_t i = 0; i < n_used; i++)
        order[i].by = SIZE_MAX - blocks[order[i].block].bytes;
    qsort(order, n_used, sizeof *order, ascending);
    for (size_t i = 0; i < n_used; i++)
        QDQI_TRY_GOTO(st, done, place_one(&p, keys, order[i].block, arena_bytes, err));
done:
    qdqi_free(p.cover);
    qdqi_free(p.starts);
    qdqi_free(p.next_start);
    qdqi_free(p.near);
    qdqi_free(p.hooks);
    qdqi_free(keys);
    return st;
}

/* ---- in the order of time ---- */

typedef struct gap {
    size_t offset, bytes;
} gap;

typedef struct gap_list {
    gap *gaps; /* by offset, never touching each other */
    size_t n, top;
} gap_list;

static void give_back(gap_list *list, size_t offset, size_t bytes) {
    size_t lo = 0, hi = list->n; /* the first gap behind the block */
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (list->gaps[mid].offset < offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    const bool joins_left = lo > 0 && list->gaps[lo - 1].offset + list->gaps[lo - 1].bytes == offset;
    const bool joins_right = lo < list->n && offset + bytes == list->gaps[lo].offset;
    if (joins_left && joins_right) {
        list->gaps[lo - 1].bytes += bytes + list->gaps[lo].bytes;
        memmove(&list->gaps[lo], &list->gaps[lo + 1], (--list->n - lo) * sizeof(gap));
    } else if (joins_left) {
        list->gaps[lo - 1].bytes += bytes;
    } else if (joins_right) {
        list->gaps[lo].offset = offset;
        list->gaps[lo].bytes += bytes;
    } else {
        memmove(&list->gaps[lo + 1], &list->gaps[lo], (list->n++ - lo) * sizeof(gap));
        list->gaps[lo] = (gap){offset, bytes};
    }
}

static bool take(gap_list *list, size_t bytes, size_t *offset_out) {
    for (size_t i = 0; i < list->n; i++) {
        gap *g = &list->gaps[i];
        if (g->bytes < bytes) continue;
        *offset_out = g->offset;
        g->offset += bytes;
        g->bytes -= bytes;
        if (g->bytes == 0) memmove(g, g + 1, (--list->n - i) * sizeof(gap));
        return true;
    }
    *offset_out = list->top;
    return qdqi_add_size(list->top, bytes, &list->top);
}

static qdq_status place_by_time(qdqi_lifetime *blocks, sort_key *by_first, size_t n_used, size_t *arena_bytes,
                                qdq_error *err) {
    sort_key *by_last = qdqi_calloc(n_used, sizeof *by_last);
    gap_list list = {.gaps = qdqi_calloc(n_used + 1, sizeof(gap))};
    qdq_status st = by_last == NULL || list.gaps == NULL ? QDQI_NO_MEMORY(err) : QDQ_OK;
    if (st != QDQ_OK) goto done;
    for (size_t i = 0; i < n_used; i++) {
        by_last[i] = (sort_key){blocks[by_first[i].block].last, by_first[i].block};
        by_first[i].by = blocks[by_first[i].block].first;
    }
    qsort(by_first, n_used, sizeof *by_first, ascending);
    qsort(by_last, n_used, sizeof *by_last, ascending);
    for (size_t i = 0, dead = 0; i < n_used; i++) {
        qdqi_lifetime *b = &blocks[by_first[i].block];
        for (; by_last[dead].by < b->first; dead++)
            give_back(&list, blocks[by_last[dead].block].offset, blocks[by_last[dead].block].bytes);
        if (!take(&list, b->bytes, &b->offset)) {
            st = qdqi_fail(err, QDQ_E_OVERFLOW, "the temporaries of the plan do not fit into the address space");
            goto done;
        }
    }
    *arena_bytes = list.top;
done:
    qdqi_free(by_last);
    qdqi_free(list.gaps);
    return st;
}

/* ---- */

/* Pairs of blocks that share a step: at each start, those that live already. */
static qdq_status count_pairs(const qdqi_lifetime *blocks, const sort_key *used, size_t n_used, uint32_t n_steps,
                              uint64_t *pairs_out, qdq_error *err) {
    uint32_t *starts = qdqi_calloc(2 * ((size_t)n_steps + 1), sizeof *starts), *ends = starts + n_steps + 1;
    if (starts == NULL) return QDQI_NO_MEMORY(err);
    for (size_t i = 0; i < n_used; i++) {
        starts[blocks[used[i].block].first]++;
        ends[blocks[used[i].block].last + 1]++;
    }
    uint64_t pairs = 0, live = 0;
    for (size_t s = 0; s <= n_steps; s++) {
        live -= ends[s];
        pairs += starts[s] * live + (uint64_t)starts[s] * starts[s] / 2;
        live += starts[s];
    }
    qdqi_free(starts);
    *pairs_out = pairs;
    return QDQ_OK;
}

qdq_status qdqi_place(qdqi_lifetime *blocks, size_t n, uint32_t n_steps, size_t *arena_bytes_out, qdq_error *err) {
    sort_key *used = qdqi_calloc(n, sizeof *used);
    if (used == NULL) return QDQI_NO_MEMORY(err);
    qdq_status st = QDQ_OK;
    size_t n_used = 0, arena_bytes = 0;
    uint64_t pairs = 0;
    for (size_t i = 0; i < n; i++) {
        blocks[i].offset = 0;
        if (blocks[i].bytes == 0 || blocks[i].first > blocks[i].last) continue;
        if (!qdqi_align_up(blocks[i].bytes, &blocks[i].bytes)) {
            st = qdqi_fail(err, QDQ_E_OVERFLOW, "a temporary of %zu bytes does not fit", blocks[i].bytes);
            goto done;
        }
        used[n_used++].block = (uint32_t)i;
    }
    QDQI_TRY_GOTO(st, done, count_pairs(blocks, used, n_used, n_steps, &pairs, err));
    st = pairs <= MAX_PAIRS ? place_by_size(blocks, n, n_steps, used, n_used, &arena_bytes, err)
                            : place_by_time(blocks, used, n_used, &arena_bytes, err);
    if (st == QDQ_OK) *arena_bytes_out = arena_bytes;
done:
    qdqi_free(used);
    return st;
}
