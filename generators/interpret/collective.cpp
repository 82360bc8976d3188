// The interpreter computes what rank 0 gets if all ranks have the same arrays.
#include "interpret/operation.h"

namespace scalide {

void run_axis_index(Operation &operation) { operation.result().data = {0}; }

void run_exchange(Operation &operation) {
    for (size_t i = 0; i < operation.results.size(); i++) {
        const std::vector<double> &from = operation.operand(i).data;
        Array &to = operation.results[i];
        to.data.assign(static_cast<size_t>(element_count(to.shape)), 0);
        const auto chunk = static_cast<size_t>(to.shape[1]);
        for (size_t k = 0; k < to.data.size(); k++)
            if (k % chunk < from.size()) to.data[k] = from[k % chunk];
    }
}

void run_collect(Operation &operation) {
    for (size_t i = 0; i < operation.results.size(); i++) {
        const std::vector<double> &from = operation.operand(i).data;
        Array &to = operation.results[i];
        to.data.resize(static_cast<size_t>(element_count(to.shape)));
        for (size_t k = 0; k < to.data.size(); k++) to.data[k] = from[k % from.size()];
    }
}

} // namespace scalide
