/* What a level provides for depthwise convolution: loops over arrays. Private to kernels/conv.
 *
 * Lines of the source (the rows that the window's height and depth select) are woven together first: a dword holds `taps` of them
 * for one channel of one column, as bytes or as 16-bit words. A tap of the window's width is then one dot product per
 * channel, and a column that several outputs see is woven once. Channels come in blocks of 64, columns in planes: vector v
 * (of the level's width) of column c is at dword (v * plane + c) * lanes. */
#ifndef QK_CONV_DW_ROW_H
#define QK_CONV_DW_ROW_H

#include "kernels/isa/isa.h"
#include "qdq/qdq.h"

enum {
    QK_DW_BLOCK = 64,  /* channels */
    QK_DW_LINES = 4,   /* most lines in a dword */
    QK_DW_OUTPUTS = 8, /* outputs are made in lots of so many */
};

/* Up to `taps` lines, their bytes from one column to the next (0: the same column again and again). */
typedef struct qk_dw_lines {
    const uint8_t *line[QK_DW_LINES];
    size_t step[QK_DW_LINES];
    size_t n;
    size_t n_channels; /* 1 … 64: no byte beyond is read */
    uint8_t flip;      /* xor of every byte: 0x80 makes unsigned of signed ones */
    qdq_dtype type;    /* of float lines: F32 BF16 F16 */
} qk_dw_lines;

typedef struct qk_dw_taps {
    size_t n_groups, group;  /* sets of woven lines; dwords from one to the next */
    size_t kernel, dilation; /* along the width, in columns */
    size_t stride;           /* columns from one output to the next */
    size_t plane;            /* columns of a plane */
    size_t n_channels;
} qk_dw_taps;

typedef struct qk_dw_row {
    qk_isa isa;
    size_t taps, lanes; /* 4 bytes, 2 words or 1 float to a dword; dwords of a vector */
    /* n columns to out; lanes beyond n_channels up to the vector's end get any value. */
    void (*weave)(const qk_dw_lines *lines, size_t n, int32_t *out, size_t plane);
    /* sums[x][c] = init[c] + Σ weights[group][k][c] · column x * stride + k * dilation, for x < n rounded up to a multiple of
     * QK_DW_OUTPUTS: so many must there be room for, columns (of any content) and sums. c < n_channels, and up to the
     * vector's end. Dwords of weights hold `taps` values as those of columns do. */
    void (*sum)(const qk_dw_taps *taps, const int32_t *columns, const int32_t *weights, const int32_t *init, size_t n,
                int32_t (*sums)[QK_DW_BLOCK]);
} qk_dw_row;

#define QK_DW(level) extern const qk_dw_row qk_dw_row_##level;
#include "kernels/conv/conv_dw.def"
#undef QK_DW
/* The same with floats: a dword is a value of one line. */
#define QK_DW_FLOAT(level) extern const qk_dw_row qk_dw_float_row_##level;
#include "kernels/conv/conv_dw_float.def"
#undef QK_DW_FLOAT

#endif
