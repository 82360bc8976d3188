#include "emit/c_text.h"
#include "emit/cache.h"
#include "emit/plan_text.h"
#include "ir/words.h"
#include <algorithm>
#include <fmt/format.h>
#include <ranges>

namespace scalide {

namespace {

const char *role_words[] = {"input", "output", "updated in place", "state of the policy, updated in place",
                            "constant, read once by scalide_bind"};

std::string describe(const Plan &plan, const PlanArgument &argument) {
    return fmt::format("{}{}, {}", to_string(plan.buffers[argument.data_buffer].type), argument.scale_buffer >= 0 ? " scaled" : "",
                       role_words[static_cast<int>(argument.role)]);
}

std::string describe_symbols(const Plan &plan) {
    std::string words;
    for (const Symbol &symbol : plan.symbols) {
        std::string likely;
        for (const int64_t value : symbol.likely) likely += fmt::format("{}{}", likely.empty() ? ", likely " : ", ", value);
        words +=
            fmt::format(" *   {} in {}..{}, a multiple of {}{}\n", symbol.name, symbol.minimum, symbol.maximum, symbol.multiple, likely);
    }
    for (const Requirement &requirement : plan.requirements)
        words += fmt::format(" *   {} ({})\n", to_string(requirement), requirement.name);
    return words.empty() ? "" : " * Extents:\n" + words;
}

std::string comment(const Plan &plan) {
    return fmt::format("/* Program {}.\n{}{} */\n", to_comment(name_to_string(plan.name)),
                       plan.doc.empty() ? "" : " * " + to_comment(plan.doc) + "\n", describe_symbols(plan));
}

/// Returns the name of an argument for its comment if it differs from the member: `"layer 0/x": `.
std::string name_beside(const std::string &member, const std::string &name) {
    const bool is_told = is_plain_name(name) && member == to_identifier(name);
    return is_told ? "" : to_comment(name_to_string(name)) + ": ";
}

std::string count_of(const Plan &plan) { return upper(to_identifier(plan.name)) + "_ARGUMENT_COUNT"; }

/// The text about the initial state, for a program whose policy has state.
std::string initial_state(const Plan &plan) {
    if (std::ranges::find(plan.arguments, ArgumentRole::state, &PlanArgument::role) == plan.arguments.end()) return "";
    return fmt::format(R"(/* scalide_initial_state with named arrays. */
static inline scalide_status {0}_initial_state(scalide_context *context, {0}_arrays *arrays) {{
    scalide_status status = scalide_check_signature(context, {0}_program(), {2});
    if (status == SCALIDE_OK) status = scalide_initial_state(context, {0}_program(), (scalide_array *)arrays, {1});
    return status;
}}

)",
                       to_identifier(plan.name), count_of(plan), signature_of(plan));
}

std::string section(const Plan &plan, Identifiers &identifiers) {
    const std::string name = to_identifier(plan.name);
    std::string members, indices;
    for (const PlanArgument &argument : plan.arguments) {
        const std::string member = identifiers.member(name + "_", argument.name);
        members += fmt::format("    scalide_array {}; /* {}{} */\n", member, name_beside(member, argument.name), describe(plan, argument));
        indices += fmt::format("    {}_{},\n", upper(name), upper(member));
    }
    return fmt::format(R"({0}const scalide_program *{1}_program(void);

/* The arrays of one binding, in the order of the program. */
typedef struct {{
{2}}} {1}_arrays;

/* The index of each argument, for scalide_set_argument. */
enum {{
{3}    {4}
}};

{5}/* scalide_bind with named arrays. It fails if the library has other arguments than this header. */
static inline scalide_status {1}_bind(scalide_context *context, const {1}_arrays *arrays, scalide_binding **binding) {{
    scalide_status status = scalide_check_signature(context, {1}_program(), {6});
    if (binding) *binding = 0;
    if (status == SCALIDE_OK) status = scalide_bind(context, {1}_program(), (const scalide_array *)arrays, {4}, binding);
    return status;
}}

/* scalide_bind_like with named arrays. */
static inline scalide_status {1}_bind_like(scalide_context *context, const scalide_binding *binding, const {1}_arrays *arrays,
                                           scalide_binding **result) {{
    return scalide_bind_like(context, binding, (const scalide_array *)arrays, {4}, result);
}}

)",
                       comment(plan), name, members, indices, count_of(plan), initial_state(plan), signature_of(plan));
}

} // namespace

std::string signature_of(const Plan &plan) {
    std::string arguments;
    for (const PlanArgument &argument : plan.arguments) arguments += fmt::format("{}: {}\n", argument.name, describe(plan, argument));
    return fmt::format("0x{}u", hash_text(arguments).substr(0, 16));
}

std::string plan_header(const std::string &library, const BuiltPrograms &programs, const std::string &targets) {
    const std::string guard = "SCALIDE_GENERATED_" + upper(library) + "_H";
    Identifiers identifiers;
    auto own = programs | std::views::filter([](const auto &program) { return program[0].main.plan.statistics.empty(); });
    for (const auto &program : own) identifiers.reserve(count_of(program[0].main.plan));
    std::string sections;
    for (const auto &program : own) sections += section(program[0].main.plan, identifiers);
    return fmt::format(R"(/* Generated by scalide build for {2}.
 *
 * Arrays are contiguous and row-major. Data must have the alignment of its elements; 64 bytes are recommended. Data of an array that is
 * updated in place must be aligned to 64 bytes. On a GPU all data must be aligned to 16 bytes. */
#ifndef {0}
#define {0}

#include "scalide/scalide.h"

#ifdef __cplusplus
extern "C" {{
#endif

{1}#ifdef __cplusplus
}}
#endif
#endif
)",
                       guard, sections, to_comment(targets));
}

} // namespace scalide
