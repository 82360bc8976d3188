#pragma once
#include "emit/compile_kernel.h"
#include "emit/plan.h"
#include "transforms/forms/forms.h"

namespace scalide {

/// A form of a program, its kernels and its plan.
struct BuiltForm {
    Form form;
    KernelTarget target;                                ///< of its kernels
    std::map<std::string, PreparedKernel> kernels = {}; ///< by name of the sub-program
    Plan plan = {};
    const Program &kernel(const std::string &name) const { return form.program.program(name); }
    /// Returns the C function of a kernel, without `_argv`.
    const std::string &symbol(const std::string &kernel) const { return kernels.at(kernel).symbol; }
};

/// The programs of a library.
using BuiltPrograms = std::vector<ProgramForms<BuiltForm>>;

/// Calls `visit` for each form of all programs and machines, in order.
template<typename Programs, typename Visit>
void each_built(Programs &programs, const Visit &visit) {
    for (auto &program : programs)
        for (auto &machine : program) each_form(machine, visit);
}

} // namespace scalide
