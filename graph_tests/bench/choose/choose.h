/* qdq-choose: measures our own kernels beside oneDNN through the requests of lowering, class by class, and prints
 * backend/lower/choice.def.
 *
 *     choose_main     levels, figures, the table
 *     choose_cases    the shapes of each class, as requests */
#ifndef CHOOSE_H
#define CHOOSE_H

#include "lower/request.h"

/* One request with what it points at. */
typedef struct choose_case {
    qdqi_request request;
    qdqi_dnnl_md src, second, bias, dst;
    qdqi_dnnl_attr attr;
    qdqi_dnnl_conv conv;
    qdqi_dnnl_pool pool;
} choose_case;

/* The i-th case; false when there are no more. */
bool choose_case_at(size_t i, choose_case *out);

#endif
