#pragma once
#include "transforms/analysis/origins.h"
#include "transforms/expand/least_extents.h"

namespace scalide {

/// When bind runs a form of a program instead of the main program. Each member that is not empty must hold.
struct FormCondition {
    std::vector<int> cards;  ///< the compute capability of the GPU is one of these
    Extent::Bindings values; ///< these symbols have these values
};

/// Returns the condition as a prefix for names of kernels: "sm_80,sm_86." or "b=1.". Empty without a condition.
std::string prefix_of(const FormCondition &condition);

/// One form of a program: calls of kernels.
struct Form {
    Program program;
    FormCondition when = {};                    ///< of the main program: its GPUs, if other GPUs have variants
    std::vector<Requirement> requirements = {}; ///< checked by bind
    std::map<std::string, Origin> origins = {}; ///< of the values between kernels, by name
};

/// The forms of a program for one machine, which is a target of the build. `T` is a Form, or what a Form became.
template<typename T>
struct MachineForms {
    T main = {};
    std::vector<T> variants = {};  ///< instead of `main` where their conditions hold. If several hold, bind takes the first
    std::optional<T> prepare = {}; ///< runs once at bind: it computes the prepared arguments of `main` and of all variants
    std::string cpu = {};          ///< the target as the user wrote it; empty: the first target of the build
};

/// The forms of a program for all machines. The first one is for the first target of the build.
template<typename T>
using ProgramForms = std::vector<MachineForms<T>>;

/// Calls `visit` for each form: the main program, the variants, the prepare program.
template<typename Machine, typename Visit>
void each_form(Machine &machine, const Visit &visit) {
    visit(machine.main);
    for (auto &variant : machine.variants) visit(variant);
    if (machine.prepare) visit(*machine.prepare);
}

/// Returns the same tree of what `change` makes of each form, in the order of each_form().
template<typename T, typename Change>
auto map_forms(MachineForms<T> machine, const Change &change) {
    MachineForms<decltype(change(std::move(machine.main)))> changed{change(std::move(machine.main))};
    for (T &variant : machine.variants) changed.variants.push_back(change(std::move(variant)));
    if (machine.prepare) changed.prepare = change(std::move(*machine.prepare));
    changed.cpu = std::move(machine.cpu);
    return changed;
}

} // namespace scalide
