/* The functions of scalide/statistics.h, called from C. Usage: statistics BATCH */
#include "counted.h"
#include "statistics_reference.h"
#include <stdlib.h>

enum { inner = 24, outer = 16, moved = 3, steps = 7, tensors = 6, arguments = 5 };

/* The arrays of a call, and what the test knows of them. */
typedef struct {
    int64_t batch;
    float *x, *w, *m, *y, *z, *m_scale;
    uint16_t *m_data;
    scalide_array arrays[arguments];
} call;

static void *zeros(int64_t count, size_t size) { return calloc((size_t)count + 1, size); }

static call make_call(scalide_context *context, int64_t batch, float *m_scale) {
    call made = {batch,
                 zeros(batch * inner, sizeof(float)),
                 zeros(inner * outer, sizeof(float)),
                 zeros(batch * moved, sizeof(float)),
                 zeros(batch * outer, sizeof(float)),
                 zeros(batch * moved, sizeof(float)),
                 m_scale,
                 zeros(batch * moved, sizeof(uint16_t)),
                 {{0}}};
    const int64_t x_shape[] = {batch, inner}, w_shape[] = {inner, outer}, m_shape[] = {batch, moved}, y_shape[] = {batch, outer};
    draw(made.w, inner * outer, 5);
    for (int64_t i = 0; i < batch * moved; ++i) made.m[i] = i % 4 == 0 ? ldexpf((float)(i % 7), -20) : (float)(i % 9 - 4) / 8;
    const scalide_array wide = scalide_dense_array(made.m, NULL, SCALIDE_F32, 2, m_shape);
    scalide_array data = scalide_dense_array(made.m_data, NULL, SCALIDE_F16, 2, m_shape); /* exact: each m is a number of f16 */
    if (scalide_convert(context, &wide, &data) != SCALIDE_OK) exit(2);
    made.arrays[0] = scalide_dense_array(made.x, NULL, SCALIDE_F32, 2, x_shape);
    made.arrays[1] = scalide_dense_array(made.w, NULL, SCALIDE_F32, 2, w_shape);
    made.arrays[2] = scalide_dense_array(made.m_data, m_scale, SCALIDE_F16, 2, m_shape);
    made.arrays[3] = scalide_dense_array(made.y, NULL, SCALIDE_F32, 2, y_shape);
    made.arrays[4] = scalide_dense_array(made.z, NULL, SCALIDE_F32, 2, m_shape);
    return made;
}

static void free_call(call *made) {
    void *const all[] = {made->x, made->w, made->m, made->y, made->z, made->m_data};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); ++i) free(all[i]);
}

/* Other numbers in each step. Some are infinite or NaN, saturate, become 0, are ties, or are subnormal in f32. */
static void set_x(call *made, int64_t step) {
    draw(made->x, made->batch * inner, (uint32_t)(100 + step));
    const float special[] = {1000, -464, 464.001f, 0, 0x1p-10f, -0x1.8p-10f, 0x1p-9f, -1e-30f, 0x1p-130f, 3e30f, 1e-25f};
    if (made->batch == 0) return;
    for (size_t i = 0; i < sizeof(special) / sizeof(*special); ++i) made->x[i + (size_t)step] = special[i];
    if (step % 2 == 0) made->x[made->batch * inner - 3] = INFINITY;
    if (step % 3 == 0) made->x[made->batch * inner - 1 - step] = NAN;
}

static scalide_statistic_info info_of(size_t index) {
    scalide_statistic_info info;
    memset(&info, 0, sizeof(info));
    check_number("status of a description", scalide_describe_statistic(counted_program(), index, &info), SCALIDE_OK, 0);
    return info;
}

static void check_descriptions(void) {
    static const struct {
        const char *tensor, *use, *op, *policy, *direction;
        int32_t dtype;
        int64_t every;
        uint32_t collects;
    } wanted[] = {{"x", "argument", "", "statistics.yaml:7", "-", SCALIDE_F32, 1, 127 & ~(4 | 8)},
                  {"w", "argument", "", "statistics.yaml:9", "-", SCALIDE_F32, 2, SCALIDE_COLLECTS_AMAX},
                  {"m", "argument", "", "statistics.yaml:11", "-", SCALIDE_F16, 3, 1 | 2 | 16},
                  {"x", "dot_general.lhs", "", "statistics.yaml:8", "forward", SCALIDE_F8_E4M3FN, 1, 127},
                  {"w", "dot_general.rhs", "", "statistics.yaml:10", "forward", SCALIDE_F8_E5M2, 2, 127 & ~32},
                  {"y", "result", "dot_general", "statistics.yaml:12", "forward", SCALIDE_F32, 4, 2 | 64}};
    check_number("number of tensors", (double)scalide_statistics_count(counted_program()), tensors, 0);
    for (size_t i = 0; i < tensors; ++i) {
        const scalide_statistic_info info = info_of(i);
        check_text("tensor", info.tensor, wanted[i].tensor);
        check_text("use", info.use, wanted[i].use);
        check_text("op", info.op, wanted[i].op);
        check_text("scope", info.scope, "");
        check_text("policy", info.policy, wanted[i].policy);
        check_text("direction", info.direction, wanted[i].direction);
        check_number("dtype", info.dtype, wanted[i].dtype, 0);
        check_number("rank", info.rank, 2, 0);
        check_number("every", (double)info.every, (double)wanted[i].every, 0);
        check_number("collects", info.collects, wanted[i].collects, 0);
    }
    check_text("line", info_of(5).location, "statistics.scl:3");
    scalide_statistic_info info;
    check_number("description 6", scalide_describe_statistic(counted_program(), tensors, &info), SCALIDE_INVALID_ARGUMENT, 0);
    check_number("description into NULL", scalide_describe_statistic(counted_program(), 0, NULL), SCALIDE_INVALID_ARGUMENT, 0);
}

/* The references of all tensors for the arrays of a call. The scale of w is chosen by the policy, so the test reads it. */
static void references(const call *made, int64_t step, double w_scale, scalide_statistic *rows) {
    float w_data[inner * outer];
    const int64_t w_count = inner * outer, x_count = made->batch * inner;
    for (int64_t i = 0; i < w_count; ++i) w_data[i] = (float)(made->w[i] / w_scale); /* exact: the scale is a power of two */
    const scalide_statistic_info infos[] = {info_of(0), info_of(1), info_of(2), info_of(3), info_of(4), info_of(5)};
    rows[0] = reference_of(made->x, x_count, 1, 0, &format_f32, &infos[0]);
    rows[1] = reference_of(made->w, w_count, 1, 0, &format_f32, &infos[1]);
    rows[2] = reference_of(made->m, made->batch * moved, *made->m_scale, 0, &format_f16, &infos[2]);
    rows[3] = reference_of(made->x, x_count, 1, 1, &format_e4m3, &infos[3]);
    rows[4] = reference_of(w_data, w_count, w_scale, 1, &format_e5m2, &infos[4]);
    rows[5] = reference_of(made->y, made->batch * outer, 1, 0, &format_f32, &infos[5]);
    for (size_t i = 0; i < tensors; ++i) rows[i].step = step;
}

/* Each tensor keeps the numbers of its newest step that collected. */
static void check_steps(scalide_binding *binding, scalide_statistics *statistics, call *made) {
    scalide_statistic rows[tensors], wanted[tensors], now[tensors];
    for (int64_t step = 0; step < steps; ++step) {
        set_x(made, step);
        check_number("status of a run", scalide_run_collecting(statistics, step), SCALIDE_OK, 0);
        check_number("newest step", (double)scalide_statistics_step(statistics), (double)step, 0);
        check_number("status of a read", scalide_read_statistics(statistics, rows, tensors), SCALIDE_OK, 0);
        const double scale = rows[4].scale;
        check_number("exponent of the scale", scale, ldexp(1, ilogb(scale)), 0);
        references(made, step, scale, now);
        for (size_t i = 0; i < tensors; ++i) {
            if (step % info_of(i).every == 0) wanted[i] = now[i];
            char what[100];
            snprintf(what, sizeof(what), "batch %d, step %d, tensor %d", (int)made->batch, (int)step, (int)i);
            check_row(what, &rows[i], wanted[i], (scalide_statistic_info[]){info_of(i)});
        }
        check_number("scale of m", rows[2].scale, *made->m_scale, 0);
        check_number("scale of x in f8", rows[3].scale, NAN, 0);
        float *y = malloc(sizeof(float) * (size_t)(made->batch * outer + 1));
        memcpy(y, made->y, sizeof(float) * (size_t)(made->batch * outer));
        check_number("status of a plain run", scalide_run(binding), SCALIDE_OK, 0);
        for (int64_t i = 0; i < made->batch * outer; ++i) check_number("y", y[i], made->y[i], 0);
        free(y);
    }
}

static void check_errors(scalide_context *context, scalide_binding *binding, call *made) {
    scalide_statistics *statistics = NULL;
    scalide_statistic rows[tensors];
    check_number("create with 4 arrays", scalide_statistics_create(binding, made->arrays, 4, NULL, &statistics), SCALIDE_INVALID_ARGUMENT,
                 0);
    check_text("message", scalide_message(context), "counted: the number of arrays must be 5, got 4. Pass one for each argument.");
    check_number("handle after an error", statistics == NULL, 1, 0);
    check_number("create", scalide_statistics_create(binding, made->arrays, arguments, NULL, &statistics), SCALIDE_OK, 0);
    check_number("program", scalide_statistics_program(statistics) == counted_program(), 1, 0);
    check_number("step before a run", (double)scalide_statistics_step(statistics), -1, 0);
    check_number("read before a run", scalide_read_statistics(statistics, rows, tensors), SCALIDE_OK, 0);
    for (size_t i = 0; i < tensors; ++i) check_number("step of a row before a run", (double)rows[i].step, -1, 0);
    for (size_t count = 0; count < 9; ++count)
        check_number("read", scalide_read_statistics(statistics, rows, count), count == tensors ? SCALIDE_OK : SCALIDE_INVALID_ARGUMENT, 0);
    check_text("message", scalide_message(context), "counted: the number of rows must be 6, got 8. Ask scalide_statistics_count.");
    check_number("read into NULL", scalide_read_statistics(statistics, NULL, tensors), SCALIDE_INVALID_ARGUMENT, 0);
    check_text("message", scalide_message(context), "scalide_read_statistics: rows must not be NULL.");
    check_number("a step that collects", scalide_run_collecting(statistics, 0), SCALIDE_OK, 0);
    scalide_statistics_destroy(statistics);
    check_number("create again", scalide_statistics_create(binding, made->arrays, arguments, NULL, &statistics), SCALIDE_OK, 0);
    check_number("new statistics have no numbers", (double)scalide_statistics_step(statistics), -1, 0);
    scalide_statistics_destroy(statistics);
}

int main(int count, char **words) {
    scalide_context *context = NULL;
    if (count != 2 || scalide_context_create(NULL, &context) != SCALIDE_OK) return 2;
    check_descriptions();
    float m_scale = 0.25f;
    call made = make_call(context, atoi(words[1]), &m_scale);
    set_x(&made, 0);
    scalide_binding *binding = NULL;
    scalide_statistics *statistics = NULL;
    check_number("bind", scalide_bind(context, counted_program(), made.arrays, arguments, &binding), SCALIDE_OK, 0);
    check_errors(context, binding, &made);
    check_number("create", scalide_statistics_create(binding, made.arrays, arguments, NULL, &statistics), SCALIDE_OK, 0);
    check_steps(binding, statistics, &made);
    scalide_statistics_destroy(statistics);
    scalide_binding_destroy(binding);
    scalide_context_destroy(context);
    free_call(&made);
    return failures == 0 ? 0 : 1;
}
