#pragma once
#include "lower/values.h"

namespace scalide {

/// A kernel while it is lowered: `kernel` has its program, symbols and inputs; the function of its kind adds outputs and the rest.
struct Lowering {
    LoweredKernel &kernel;
    Values &values;
    const Halide::Target &target;
    const Budgets &budgets;
};

/// One function a kind (lower/*/<kind>.cpp). What it leaves for the schedule is documented in lower/stages.h.
void lower_scalar(Lowering &lowering);
void lower_map(Lowering &lowering);
void lower_row(Lowering &lowering);
void lower_contract(Lowering &lowering);
void lower_column(Lowering &lowering);
void lower_full(Lowering &lowering);
void lower_transpose(Lowering &lowering);
void lower_scan(Lowering &lowering);
void lower_scatter(Lowering &lowering);
void lower_sort(Lowering &lowering);
void lower_window(Lowering &lowering);
void lower_tiled(Lowering &lowering);

} // namespace scalide
