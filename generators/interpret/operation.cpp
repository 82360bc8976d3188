#include "interpret/operation.h"
#include "expr/base_operators.h"
#include <map>
#include <unordered_map>

namespace scalide {

namespace {

using Table = std::unordered_map<std::string_view, Run>;

Table make_table() {
    static const std::map<Shape, Run> by_shape{
        {Shape::reduce, run_reduce}, {Shape::scan, run_scan}, {Shape::scatter, run_scatter}, {Shape::sort, run_argsort}};
    Table table{{"convert_element_type", run_convert},
                {"bitcast_convert_type", run_bitcast},
                {"reduce_precision", run_reduce_precision},
                {"broadcast_in_dim", run_broadcast},
                {"reshape", run_reshape},
                {"transpose", run_transpose},
                {"rev", run_rev},
                {"slice", run_slice},
                {"pad", run_pad},
                {"concatenate", run_concatenate},
                {"gather", run_gather},
                {"dynamic_slice", run_dynamic_slice},
                {"dynamic_update_slice", run_dynamic_update_slice},
                {"constant", run_constant},
                {"iota", run_iota},
                {"size", run_size},
                {"dot_general", run_dot_general},
                {"reduce_window_sum", run_reduce_window},
                {"reduce_window_max", run_reduce_window},
                {"reduce_window_min", run_reduce_window},
                {"select_and_scatter_add", run_select_and_scatter_add},
                {"select_and_gather_add", run_select_and_gather_add},
                {"conv_general_dilated", run_convolution},
                {"axis_index", run_axis_index},
                {"exchange", run_exchange},
                {"collect", run_collect},
                {"all_reduce_max_over", run_reshape}}; // all ranks have the same arrays
    for (const BaseOperator &row : base_operators()) {
        if (row.evaluate != nullptr) table.emplace(row.name, run_elementwise);
        if (row.gives_place) table.emplace(row.name, run_arg_reduce);
        if (by_shape.contains(row.shape)) table.emplace(row.name, by_shape.at(row.shape));
    }
    return table;
}

} // namespace

Run find_run(std::string_view op) {
    static const Table table = make_table();
    const auto found = table.find(op);
    internal_check(found != table.end(), "the interpreter cannot run " + std::string(op));
    return found->second;
}

std::vector<int64_t> Operation::integers(const std::string &attribute) const {
    const auto found = attributes.find(attribute);
    return found == attributes.end() ? std::vector<int64_t>{} : to_integers(found->second);
}

int64_t element_count(const std::vector<int64_t> &shape) {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    return count;
}

void store(Array &array, Mode mode) {
    if (array.dtype == Dtype::boolean) {
        for (double &value : array.data) value = value != 0;
    } else if (is_integer(array.dtype)) {
        for (double &value : array.data) value = wrap_integer(array.dtype, value);
    } else if (array.dtype == Dtype::f32 && mode == Mode::stored) {
        for (double &value : array.data) value = static_cast<float>(value);
    } else if (is_float(array.dtype) && mode == Mode::stored) {
        for (double &value : array.data) value = round_to(array.dtype, value, keeping_infinity(array.dtype));
    }
}

} // namespace scalide
