/* What the machine can do, and how much of it may be used.
 *
 * The cap comes from the environment variable QDQ_MAX_ISA, read at the first call (a name of isa.def, or one of oneDNN's: sse41
 * avx2 avx2_vnni avx512_core avx512_core_vnni …; an unknown name caps nothing), and can be moved by tests. Kernels are chosen
 * when a plan is made: moving the cap does not touch plans that exist. All calls are thread-safe. */
#ifndef QK_ISA_H
#define QK_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Lower-case, so that one token of a table row gives the enumerator and the suffix of the function. */
typedef enum qk_isa {
#define QK_ISA(name, needs) QK_ISA_##name,
#include "kernels/isa/isa.def"
#undef QK_ISA
    QK_ISA_COUNT
} qk_isa;

/* True when the host has the level and the cap lets it be seen. */
bool qk_isa_has(qk_isa isa);
/* True when the host has the level, whatever the cap. */
bool qk_isa_host_has(qk_isa isa);
qk_isa qk_isa_cap(void);
void qk_isa_set_cap(qk_isa isa);
/* "avx2"; "?" for a value outside the enum. */
const char *qk_isa_name(qk_isa isa);
bool qk_isa_from_name(const char *name, qk_isa *isa_out);

/* Bytes of the caches of one core; usual values when the machine does not tell. */
size_t qk_isa_l1d_bytes(void);
size_t qk_isa_l2_bytes(void);
/* A result of at least this many bytes will not be found in a cache by its reader: kernels may write past the caches. */
size_t qk_isa_stream_bytes(void);

/* The levels of a machine with these features (the QK_CPU_ bits of cpu.h), as a mask with bit 1 << level. ref is always there. */
uint32_t qk_isa_levels(uint32_t features);

#ifdef __cplusplus
}
#endif
#endif
