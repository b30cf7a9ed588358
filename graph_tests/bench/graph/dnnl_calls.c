#define _GNU_SOURCE /* dladdr */
#include "dnnl_calls.h"

#include "dnnl.h"

#include <dlfcn.h>
#include <string.h>

/* dlsym gives an object pointer; C has no cast from it to a function. */
static qdq_status find(void *lib, const char *name, void *slot, qdq_error *err) {
    const void *at = dlsym(lib, name);
    if (at == NULL) return qdqi_fail(err, QDQ_E_IO, "the library has no %s: %s", name, dlerror());
    memcpy(slot, &at, sizeof at);
    return QDQ_OK;
}

/* The file that dnnl_version came from. */
static const char *linked_dnnl(void) {
    const dnnl_version_t *(*const version)(void) = dnnl_version;
    void *at;
    Dl_info info;
    memcpy(&at, &version, sizeof at);
    return dladdr(at, &info) != 0 ? info.dli_fname : "libdnnl.so.3";
}

qdq_status dnnl_calls_open(const char *path, dnnl_calls *calls, qdq_error *err) {
    *calls = (dnnl_calls){.lib = dlopen(path != NULL ? path : linked_dnnl(), RTLD_NOW | RTLD_LOCAL)};
    if (calls->lib == NULL) return qdqi_fail(err, QDQ_E_IO, "cannot open it: %s", dlerror());
#define DNNL_CALLS_FIND(name) QDQI_TRY(find(calls->lib, "dnnl_graph_" #name, &calls->name, err));
    QH_DNNL_GRAPH_CALLS(DNNL_CALLS_FIND)
#undef DNNL_CALLS_FIND
    return QDQ_OK;
}
