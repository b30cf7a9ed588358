#include "base/strides.h"

#include "qdq/qdq.h"

bool qdqi_strides_overlap(int32_t ndims, const int64_t *dims_in, const int64_t *strides_in) {
    int64_t dims[QDQ_MAX_NDIMS], strides[QDQ_MAX_NDIMS];
    int32_t n = 0;
    for (int32_t d = 0; d < ndims; d++) {
        if (dims_in[d] == 0) return false;
        if (dims_in[d] == 1) continue;
        int32_t k = n++;
        for (; k > 0 && strides[k - 1] > strides_in[d]; k--) {
            dims[k] = dims[k - 1];
            strides[k] = strides[k - 1];
        }
        dims[k] = dims_in[d];
        strides[k] = strides_in[d];
    }
    /* each dim must step over all that the inner ones reach */
    int64_t reach = 0;
    for (int32_t k = 0; k < n; k++) {
        if (strides[k] <= reach) return true;
        reach += (dims[k] - 1) * strides[k];
    }
    return false;
}
