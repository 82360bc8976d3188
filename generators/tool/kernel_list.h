#pragma once
#include "rulebook/policy.h"
#include "rulebook/yaml_value.h"
#include <functional>

namespace scalide {

/// One operator of a kernel. Its first operand is the result of the previous operator.
struct KernelStep {
    const Rule *rule;
    Attributes attributes;
    Location location;
    std::map<std::string, Location> places = {}; ///< of the attributes that the list gives
};

/// An operand of a kernel.
struct ListedOperand {
    std::string name;
    Extents shape;
    std::optional<Dtype> dtype = {}; ///< nothing: chosen by the class of the operand and the dtype of the kernel
    Location location = {};          ///< of the shape
    bool is_constant = false;        ///< read once, by scalide_prepare
};

/// One function of a kernel library: a sequence of operators.
struct LibraryKernel {
    std::string name; ///< without the prefix of the library
    std::vector<KernelStep> steps;
    std::vector<std::vector<ListedOperand>> operands; ///< by step, without the result of the previous step
    Dtype dtype = Dtype::f32;                         ///< of float operands
    bool scaled = false;                              ///< float operands and results are scaled arrays
    std::vector<std::string> gradients;               ///< the operands for which a second function computes the gradient
    std::optional<Policy> policy;                     ///< nothing: the policy of the build
    std::vector<Symbol> symbols;                      ///< symbols with bounds
    Location location;
};

/// Loads a policy by its name or file.
using PolicyLoader = std::function<Policy(const std::string &)>;

/// Reads a kernel list: a YAML list of kernels, or a map with `symbols` and `kernels`. docs/guides/kernel-libraries.md describes the
/// format. Throws UserError with file, line and kernel for an unknown key, operator, attribute or name, and for a missing shape.
std::vector<LibraryKernel> read_kernels(const std::string &yaml, const std::string &file, const Rulebook &rulebook,
                                        const PolicyLoader &load);

/// Reads one kernel from its short form, `[NAME=]OPERATOR[(ATTRIBUTE=VALUE, ...)]:TYPE[,TYPE...]`, such as `softmax(axes=[1]):f32[b,n]`.
LibraryKernel read_short_kernel(const std::string &text, const Rulebook &rulebook, const PolicyLoader &load);

/// Returns true if an operator can be a function of a library: it has array operands and no sub-program.
bool is_callable(const Rule &rule);

/// Returns the rule of an operator. Throws UserError at `where` if it does not exist or is not callable.
const Rule *callable_rule(const Rulebook &rulebook, const std::string &op, const Location &where);

} // namespace scalide
