#pragma once
#include "lower/kernel/budgets.h"
#include "lower/values/values.h"

namespace scalide {

/// The state of a lowering. `kernel` already has its program, symbols and inputs. The function of the kernel's kind adds outputs, shared
/// elements and stages.
struct Lowering {
    LoweredKernel &kernel;
    Values &values;
    const Halide::Target &target;
    const Budgets &budgets;
};

/// One function for each kernel kind (lower/*/<kind>.cpp). lower/kernel/stages.h documents what each one leaves for its schedule.
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
void lower_small(Lowering &lowering);

} // namespace scalide
