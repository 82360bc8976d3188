/* A plan as `scalide build` writes it, by hand:
 *
 * program sample(x: f32[b, 4], w: f32[4] scaled inout) -> (y: f32[b], mean: f32[], w = w1)   b in 2..1024 step 2
 *   rows:   h = x . w.data, in parallel, through scratch memory; y = h * w.scale
 *   reduce: total = sum(y)
 *   update: mean = total / b; w1.data = w.data + [1, 2, 3, 4]; w1.scale = 2 * w.scale  */
#include "sample_program.h"

#define COUNT(table) ((int32_t)(sizeof(table) / sizeof((table)[0])))

static const scalide_symbol symbols[] = {{"b", 2, 1024, 2}};
static const scalide_term b_terms[] = {{1, {0, -1, -1, -1}}}, four_terms[] = {{4, {-1, -1, -1, -1}}};
#define EXTENT_B                                                                                                                           \
    { b_terms, 1 }
#define EXTENT_4                                                                                                                           \
    { four_terms, 1 }
static const scalide_extent shape_b4[] = {EXTENT_B, EXTENT_4}, shape_b[] = {EXTENT_B}, shape_4[] = {EXTENT_4};

enum { X, W, W_SCALE, Y, MEAN, H, TOTAL };
static const scalide_buffer buffers[] = {
    {"x", SCALIDE_F32, 2, shape_b4, SCALIDE_STORAGE_DATA, 0, -1, 0},
    {"w.data", SCALIDE_F32, 1, shape_4, SCALIDE_STORAGE_DATA, 1, 2, 2, SCALIDE_DATA, "w"},
    {"w.scale", SCALIDE_F32, 0, 0, SCALIDE_STORAGE_SCALE, 1, 2, 2, SCALIDE_SCALE, "w"},
    {"y", SCALIDE_F32, 1, shape_b, SCALIDE_STORAGE_DATA, 2, 0, 1},
    {"mean", SCALIDE_F32, 0, 0, SCALIDE_STORAGE_DATA, 3, 2, 2},
    {"h", SCALIDE_F32, 1, shape_b, SCALIDE_STORAGE_ARENA, -1, 0, 0},
    {"total", SCALIDE_F64, 0, 0, SCALIDE_STORAGE_SCALAR, 0, 1, 2},
};
static const scalide_argument arguments[] = {
    {"x", SCALIDE_INPUT, X, -1, 0},
    {"w", SCALIDE_INOUT, W, W_SCALE, 0},
    {"y", SCALIDE_OUTPUT, Y, -1, 0},
    {"mean", SCALIDE_OUTPUT, MEAN, -1, 0},
};
static const scalide_operand rows_operands[] = {
    {SCALIDE_OPERAND_BUFFER, X, 2, shape_b4, 0}, {SCALIDE_OPERAND_BUFFER, W, 1, shape_4, 0}, {SCALIDE_OPERAND_BUFFER, W_SCALE, 0, 0, 0},
    {SCALIDE_OPERAND_SYMBOL, 0, 0, 0, 0},        {SCALIDE_OPERAND_BUFFER, H, 1, shape_b, 0}, {SCALIDE_OPERAND_BUFFER, Y, 1, shape_b, 0},
};
static const scalide_operand reduce_operands[] = {{SCALIDE_OPERAND_BUFFER, Y, 1, shape_b, 0}, {SCALIDE_OPERAND_BUFFER, TOTAL, 0, 0, 0}};
static const scalide_operand update_operands[] = {
    {SCALIDE_OPERAND_BUFFER, TOTAL, 0, 0, 0},   {SCALIDE_OPERAND_SYMBOL, 0, 0, 0, 0},    {SCALIDE_OPERAND_BUFFER, W, 1, shape_4, 0},
    {SCALIDE_OPERAND_BUFFER, W_SCALE, 0, 0, 0}, {SCALIDE_OPERAND_BUFFER, MEAN, 0, 0, 0},
};
static const scalide_step steps[] = {
    {"rows", sample_rows, rows_operands, COUNT(rows_operands), 0},
    {"reduce", sample_reduce, reduce_operands, COUNT(reduce_operands), 0},
    {"update", sample_update, update_operands, COUNT(update_operands), 0},
};
static const scalide_program program = {SCALIDE_PLAN_VERSION,
                                        "sample",
                                        SCALIDE_CPU,
                                        "x86-64-linux-sse41",
                                        "name: plain",
                                        "0123",
                                        COUNT(symbols),
                                        COUNT(arguments),
                                        COUNT(buffers),
                                        COUNT(steps),
                                        1,
                                        symbols,
                                        arguments,
                                        buffers,
                                        steps,
                                        0,
                                        0,
                                        0,
                                        0,
                                        0,
                                        0};

const scalide_program *sample_program(void) { return &program; }
