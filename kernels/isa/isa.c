#include "kernels/isa/isa.h"

#include "kernels/isa/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    uint32_t needs;
} levels[QK_ISA_COUNT] = {
#define QK_ISA(name, needs) [QK_ISA_##name] = {#name, needs},
#include "kernels/isa/isa.def"
#undef QK_ISA
};

static const struct {
    const char *name;
    qk_isa isa;
} onednn_names[] = {
    {"sse41", QK_ISA_ref},
    {"avx", QK_ISA_ref},
    {"avx2_vnni", QK_ISA_avxvnni},
    {"avx2_vnni_2", QK_ISA_avxvnni},
    {"avx512_core", QK_ISA_avx512},
    {"avx512_core_vnni", QK_ISA_avx512vnni},
    {"avx512_core_bf16", QK_ISA_avx512vnni},
    {"avx10_1_512", QK_ISA_avx512bf16},
    {"avx512_core_fp16", QK_ISA_avx512bf16},
    {"avx512_core_amx", QK_ISA_avx512bf16},
    {"avx10_1_512_amx", QK_ISA_avx512bf16},
    {"default", QK_ISA_avx512bf16},
    {"all", QK_ISA_avx512bf16},
};

/* The cap plus one; zero is "not read yet". */
static _Atomic uint32_t cap_plus_one;

uint32_t qk_isa_levels(uint32_t features) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < QK_ISA_COUNT; i++)
        if ((levels[i].needs & features) == levels[i].needs) mask |= 1u << i;
    return mask;
}

bool qk_isa_from_name(const char *name, qk_isa *isa_out) {
    for (uint32_t i = 0; i < QK_ISA_COUNT; i++)
        if (strcasecmp(name, levels[i].name) == 0) {
            *isa_out = (qk_isa)i;
            return true;
        }
    for (size_t i = 0; i < sizeof onednn_names / sizeof *onednn_names; i++)
        if (strcasecmp(name, onednn_names[i].name) == 0) {
            *isa_out = onednn_names[i].isa;
            return true;
        }
    return false;
}

qk_isa qk_isa_cap(void) {
    uint32_t cap = atomic_load_explicit(&cap_plus_one, memory_order_relaxed);
    if (cap) return (qk_isa)(cap - 1);
    qk_isa isa = (qk_isa)(QK_ISA_COUNT - 1);
    const char *name = getenv("QDQ_MAX_ISA");
    if (name) (void)qk_isa_from_name(name, &isa);
    /* A cap that a test sets meanwhile wins. */
    uint32_t unread = 0;
    if (!atomic_compare_exchange_strong(&cap_plus_one, &unread, (uint32_t)isa + 1)) return (qk_isa)(unread - 1);
    return isa;
}

void qk_isa_set_cap(qk_isa isa) {
    if ((uint32_t)isa < QK_ISA_COUNT) atomic_store(&cap_plus_one, (uint32_t)isa + 1);
}

bool qk_isa_host_has(qk_isa isa) {
    return (uint32_t)isa < QK_ISA_COUNT && (qk_isa_levels(qk_cpu_host()->features) >> isa & 1u);
}

bool qk_isa_has(qk_isa isa) {
    return isa <= qk_isa_cap() && qk_isa_host_has(isa);
}

const char *qk_isa_name(qk_isa isa) {
    return (uint32_t)isa < QK_ISA_COUNT ? levels[isa].name : "?";
}

static size_t known(size_t bytes, size_t usual) {
    return bytes ? bytes : usual;
}

size_t qk_isa_l1d_bytes(void) {
    return known(qk_cpu_host()->l1d_bytes, 32u << 10);
}

size_t qk_isa_l2_bytes(void) {
    return known(qk_cpu_host()->l2_bytes, 1u << 20);
}

size_t qk_isa_stream_bytes(void) {
    /* The last cache is shared, and a virtual machine reports the whole of the host's. */
    size_t bytes = known(qk_cpu_host()->l3_bytes, 16u << 20) / 2, least = 4u << 20, most = 32u << 20;
    return bytes < least ? least : bytes > most ? most : bytes;
}
