#include "onednn/onednn_impl.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* QDQ_MAX_ISA caps our own kernels and oneDNN alike: our spellings, and oneDNN's. */
static const struct {
    const char *name;
    dnnl_cpu_isa_t isa;
} isa_names[] = {
    {"none", dnnl_cpu_isa_sse41},
    {"ref", dnnl_cpu_isa_sse41},
    {"sse41", dnnl_cpu_isa_sse41},
    {"avx", dnnl_cpu_isa_avx},
    {"avx2", dnnl_cpu_isa_avx2},
    {"avxvnni", dnnl_cpu_isa_avx2_vnni},
    {"avx2_vnni", dnnl_cpu_isa_avx2_vnni},
    {"avx2_vnni_2", dnnl_cpu_isa_avx2_vnni_2},
    {"avx512", dnnl_cpu_isa_avx512_core},
    {"avx512_core", dnnl_cpu_isa_avx512_core},
    {"avx512vnni", dnnl_cpu_isa_avx512_core_vnni},
    {"avx512_core_vnni", dnnl_cpu_isa_avx512_core_vnni},
    {"avx512vbmi", dnnl_cpu_isa_avx512_core_bf16},
    {"avx512bf16", dnnl_cpu_isa_avx512_core_bf16},
    {"avx512_core_bf16", dnnl_cpu_isa_avx512_core_bf16},
    {"avx512_core_fp16", dnnl_cpu_isa_avx512_core_fp16},
    {"avx10_1_512", dnnl_cpu_isa_avx10_1_512},
    {"avx512_core_amx", dnnl_cpu_isa_avx512_core_amx},
    {"avx10_1_512_amx", dnnl_cpu_isa_avx10_1_512_amx},
    {"avx512_core_amx_fp16", dnnl_cpu_isa_avx512_core_amx_fp16},
    {"avx10_1_512_amx_fp16", dnnl_cpu_isa_avx10_1_512_amx_fp16},
};

static dnnl_engine_t the_engine;
static char version_text[32];
static bool jit_off;

static void initialise(void) {
    const char *jit = getenv("QDQ_JIT");
    jit_off = jit != NULL && strcmp(jit, "off") == 0;
    if (jit_off) return;
    const char *cap = getenv("QDQ_MAX_ISA");
    for (size_t i = 0; cap != NULL && i < sizeof isa_names / sizeof isa_names[0]; i++)
        /* refused when the host has used oneDNN before us: then its own cap holds */
        if (strcmp(cap, isa_names[i].name) == 0) (void)dnnl_set_max_cpu_isa(isa_names[i].isa);
    const dnnl_version_t *v = dnnl_version();
    snprintf(version_text, sizeof version_text, "%d.%d.%d", v->major, v->minor, v->patch);
    if (dnnl_engine_create(&the_engine, dnnl_cpu, 0) != dnnl_success) the_engine = NULL;
}

dnnl_engine_t qdqi_dnnl_engine(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, initialise);
    return the_engine;
}

bool qdqi_dnnl_available(void) {
    return qdqi_dnnl_engine() != NULL;
}

bool qdqi_dnnl_jit_off(void) {
    (void)qdqi_dnnl_engine();
    return jit_off;
}

const char *qdqi_dnnl_version(void) {
    return qdqi_dnnl_available() ? version_text : "none";
}

static bool isa_has(dnnl_cpu_isa_t isa) {
    return qdqi_dnnl_available() && ((unsigned)dnnl_get_effective_cpu_isa() & (unsigned)isa) == (unsigned)isa;
}

bool qdqi_dnnl_int8_exact(void) {
    return isa_has(dnnl_cpu_isa_avx512_core_vnni) || isa_has(dnnl_cpu_isa_avx2_vnni);
}

bool qdqi_dnnl_has_dtype(qdq_dtype dtype) {
    if (!qdqi_dnnl_available()) return false;
    switch (dtype) {
    case QDQ_DTYPE_F32:
    case QDQ_DTYPE_S32:
    case QDQ_DTYPE_S8:
    case QDQ_DTYPE_U8: return true;
    case QDQ_DTYPE_BF16: return isa_has(dnnl_cpu_isa_avx512_core) || isa_has(dnnl_cpu_isa_avx2_vnni_2);
    case QDQ_DTYPE_F16: return isa_has(dnnl_cpu_isa_avx512_core_fp16) || isa_has(dnnl_cpu_isa_avx2_vnni_2);
    case QDQ_DTYPE_UNDEF:
    case QDQ_DTYPE_F64:
    case QDQ_DTYPE_BOOLEAN:
    case QDQ_DTYPE_F8_E5M2:
    case QDQ_DTYPE_F8_E4M3:
    case QDQ_DTYPE_S4:
    case QDQ_DTYPE_U4:
    case QDQ_DTYPE_S64:
    case QDQ_DTYPE_S16:
    case QDQ_DTYPE_U16: return false;
    }
    return false;
}
