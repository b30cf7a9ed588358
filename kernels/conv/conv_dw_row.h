/* What a level provides for depthwise convolution: loops over arrays. Private to kernels/conv.
 *
 * Lines of the source (the rows that the window's height and depth select) are woven together first: a dword holds `taps` of them
 * for one channel of one column, as bytes or as 16-bit words. A tap of the window's width is then one dot product per
 * channel, and a column that several outputs see is woven once. Channels come in blocks of 64, columns in planes: vector v
 * (of the level's width) of column c is at dword (v * plane + c) * lanes. */
#ifndef QK_CONV_DW_ROW_H
#define QK_CONV_DW_ROW_H

#include "kernels/conv/conv_end.h"
#include "kernels/isa/isa.h"

enum {
    QK_DW_BLOCK = 64,     /* channels */
    QK_DW_LINES = 4,      /* most lines in a dword */
    QK_DW_OUTPUTS = 4,    /* outputs are made in lots of so many */
    QK_DW_MOST_LINES = 16 /* of a window that is read where it lies */
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

/* Lines of outputs whose window's lines are read where they lie. Integers: a window of 3 x 3, or of one channel 5 x 5, columns
 * next to each other, a stride of 1 or 2. Floats: F32, what lies in the padding is left out. */
typedef struct qk_dw_strip {
    const uint8_t *const *line; /* [output][window]: at column 0, NULL in the padding */
    size_t n_lines, n_window;   /* of outputs; of the window, at most QK_DW_MOST_LINES */
    size_t step;                /* bytes from column to column */
    const int32_t
        *weights;    /* of floats: [line of the window][tap][QK_DW_BLOCK]; integers: [tap][QK_DW_BLOCK], bytes of lines;
                            * groups: [line][part][tap][QK_DW_BLOCK], bytes of channels */
    size_t in_group; /* 1, 4 or 8 channels */
    const uint8_t *padding; /* a pixel of zero points */
    int64_t width, pad;     /* columns of the source, and before it */
    size_t n_out, stride, kernel, dilation, n_channels;
    uint8_t flip;
    const int32_t *init;
    ptrdiff_t dst_step; /* bytes from line to line of outputs */
} qk_dw_strip;

typedef struct qk_dw_row {
    qk_isa isa;
    size_t taps, lanes; /* 4 bytes, 2 words or 1 float to a dword; dwords of a vector */
    /* n columns to out; lanes beyond n_channels up to the vector's end get any value. */
    void (*weave)(const qk_dw_lines *lines, size_t n, int32_t *out, size_t plane);
    /* sums[x][c] = init[c] + Σ weights[group][k][c] · column x * stride + k * dilation, for x < n rounded up to a multiple of
     * QK_DW_OUTPUTS: so many must there be room for, columns (of any content) and sums. c < n_channels, and up to the
     * vector's end. Dwords of weights hold `taps` values as those of columns do. Or, where the level `ends` and `end` is not NULL,
     * no sums, but what that says of n outputs; to bytes only from integers. */
    void (*sum)(const qk_dw_taps *taps, const int32_t *columns, const int32_t *weights, const int32_t *init, size_t n,
                const qk_conv_end *end, int32_t (*sums)[QK_DW_BLOCK]);
    /* The same of one line of groups: `in_group` channels go to as many, `taps` of them at a time. Lane c of a column holds those
     * from part * taps on of the group of channel c. */
    void (*spread)(const qk_dw_lines *line, size_t in_group, size_t part, size_t n, int32_t *out, size_t plane);
    bool ends;
    /* The results; NULL: there is no such way. */
    void (*strip)(const qk_dw_strip *strip, const qk_conv_end *end);
    void (*group_strip)(const qk_dw_strip *strip, const qk_conv_end *end);
} qk_dw_row;

#define QK_DW(level) extern const qk_dw_row qk_dw_row_##level;
#include "kernels/conv/conv_dw.def"
#undef QK_DW
/* The same with floats: a dword is a value of one line. */
#define QK_DW_FLOAT(level) extern const qk_dw_row qk_dw_float_row_##level;
#include "kernels/conv/conv_dw_float.def"
#undef QK_DW_FLOAT

#endif
