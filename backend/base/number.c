#include "base/number.h"

#include <math.h>
#include <stdint.h>

typedef struct cursor {
    const char *p, *end;
} cursor;

static bool take(cursor *c, char wanted) {
    if (c->p == c->end || *c->p != wanted) return false;
    c->p++;
    return true;
}

static bool take_sign(cursor *c) {
    const bool minus = take(c, '-');
    if (!minus) (void)take(c, '+');
    return minus;
}

static bool take_digit(cursor *c, int *digit) {
    if (c->p == c->end || *c->p < '0' || *c->p > '9') return false;
    *digit = *c->p++ - '0';
    return true;
}

/* v * 10^exponent; far enough for everything from 0 to infinity. A long double holds powers up to 10^27 exactly. */
static long double scaled(long double v, int exponent) {
    if (v == 0.0L || exponent < -400) return 0.0L;
    if (exponent > 400) return HUGE_VALL;
    while (exponent != 0) {
        const int n = exponent > 27 ? 27 : exponent < -27 ? -27 : exponent;
        long double power = 1.0L;
        for (int i = 0; i < (n < 0 ? -n : n); i++)
            power *= 10.0L;
        v = n < 0 ? v / power : v * power;
        exponent -= n;
    }
    return v;
}

bool qdqi_text_f32(const char *text, size_t n, float *out) {
    enum { MOST = 100000 }; /* of an exponent: farther makes no difference */
    cursor c = {text, text + n};
    const bool minus = take_sign(&c);
    uint64_t digits = 0; /* the first 18 that count */
    int exponent = 0, digit;
    bool any = false, fraction = false;
    for (;; any = true) {
        if (!fraction && take(&c, '.')) fraction = true;
        if (!take_digit(&c, &digit)) break;
        const bool full = digits >= UINT64_C(100000000000000000);
        if (!full) digits = digits * 10 + (uint64_t)digit;
        if (full != fraction && exponent > -MOST && exponent < MOST) exponent += full ? 1 : -1;
    }
    if (!any) return false;
    if (take(&c, 'e') || take(&c, 'E')) {
        const bool down = take_sign(&c);
        int e = 0;
        if (!take_digit(&c, &digit)) return false;
        do {
            if (e < MOST) e = e * 10 + digit;
        } while (take_digit(&c, &digit));
        exponent += down ? -e : e;
    }
    const float v = (float)scaled((long double)digits, exponent);
    *out = minus ? -v : v;
    return c.p == c.end && isfinite(v);
}
