#include "emit/plan_text.h"
#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace scalide {

namespace {

std::string quoted(const std::string &text) {
    std::string words = "\"";
    for (const char c : text) {
        if (c == '\n') {
            words += "\\n\"\n    \"";
        } else {
            if (c == '"' || c == '\\') words += '\\';
            words += c;
        }
    }
    return words + "\"";
}

// Extents as tables, each distinct polynomial and shape once.
class ExtentTables {
public:
    explicit ExtentTables(const std::vector<Symbol> &symbols) : symbols_(symbols) {}

    // The C expression for a shape: a pointer to its extents.
    std::string shape(const Extents &shape) {
        if (shape.empty()) return "0";
        const auto found = std::ranges::find(shapes_, shape);
        const size_t index = static_cast<size_t>(found - shapes_.begin());
        if (found == shapes_.end()) shapes_.push_back(shape);
        return fmt::format("shape{}", index);
    }

    std::string text() const {
        std::string terms, extents;
        for (size_t i = 0; i < shapes_.size(); i++) {
            std::string rows;
            for (size_t axis = 0; axis < shapes_[i].size(); axis++) {
                const auto &polynomial = shapes_[i][axis].terms();
                if (polynomial.empty()) {
                    rows += "{0, 0}, ";
                    continue;
                }
                terms += fmt::format("static const scalide_term term{}_{}[] = {{", i, axis);
                for (const auto &[monomial, coefficient] : polynomial) terms += term(monomial, coefficient);
                terms += "};\n";
                rows += fmt::format("{{term{}_{}, {}}}, ", i, axis, polynomial.size());
            }
            extents += fmt::format("static const scalide_extent shape{}[] = {{{}}};\n", i, rows);
        }
        return terms + extents;
    }

private:
    std::string term(const Extent::Monomial &monomial, int64_t coefficient) const {
        std::string factors;
        for (size_t k = 0; k < 4; k++) {
            const auto found = k < monomial.size() ? std::ranges::find(symbols_, monomial[k], &Symbol::name) : symbols_.end();
            factors += fmt::format("{}, ", found == symbols_.end() ? -1 : found - symbols_.begin());
        }
        internal_check(monomial.size() <= 4, "plan: an extent multiplies at most 4 symbols");
        return fmt::format("{{{}, {{{}}}}}, ", coefficient, factors);
    }

    const std::vector<Symbol> &symbols_;
    std::vector<Extents> shapes_;
};

std::string table(const std::string &type, const std::string &name, const std::string &rows) {
    if (rows.empty()) return "";
    return fmt::format("static const {} {}[] = {{\n{}}};\n", type, name, rows);
}

std::string steps_text(const Plan &plan, const std::map<std::string, std::string> &kernel_symbols, ExtentTables &extents) {
    std::string operands, steps;
    for (size_t s = 0; s < plan.steps.size(); s++) {
        std::string rows;
        for (const PlanOperand &operand : plan.steps[s].operands) {
            rows += operand.is_symbol ? fmt::format("    {{SCALIDE_OPERAND_SYMBOL, {}, 0, 0}},\n", operand.index)
                                      : fmt::format("    {{SCALIDE_OPERAND_BUFFER, {}, {}, {}}},\n", operand.index, operand.type.rank(),
                                                    extents.shape(operand.type.shape));
        }
        operands += table("scalide_operand", fmt::format("operands{}", s), rows);
        steps += fmt::format("    {{{}, {}_argv, operands{}, {}}},\n", quoted(plan.steps[s].kernel),
                             kernel_symbols.at(plan.steps[s].kernel), s, plan.steps[s].operands.size());
    }
    return operands + table("scalide_step", "steps", steps);
}

} // namespace

std::string to_identifier(const std::string &name) {
    std::string identifier;
    for (const unsigned char c : name) identifier += std::isalnum(c) ? static_cast<char>(c) : '_';
    return identifier.empty() || std::isdigit(static_cast<unsigned char>(identifier[0])) ? "_" + identifier : identifier;
}

std::string plan_source(const Plan &plan, const std::map<std::string, std::string> &kernel_symbols) {
    ExtentTables extents(plan.symbols);
    std::string declarations, symbols, arguments, buffers;
    for (const auto &[kernel, symbol] : kernel_symbols) declarations += fmt::format("int {}_argv(void **args);\n", symbol);
    for (const Symbol &symbol : plan.symbols) {
        symbols += fmt::format("    {{{}, {}, {}, {}}},\n", quoted(symbol.name), symbol.minimum, symbol.maximum, symbol.multiple);
    }
    for (const PlanArgument &argument : plan.arguments) {
        arguments += fmt::format("    {{{}, {}, {}, {}}},\n", quoted(argument.name), static_cast<int>(argument.role), argument.data_buffer,
                                 argument.scale_buffer);
    }
    for (const PlanBuffer &buffer : plan.buffers) {
        buffers += fmt::format("    {{{}, {}, {}, {}, {}, {}, {}, {}, 0, 0}},\n", quoted(buffer.name), static_cast<int>(buffer.type.dtype),
                               buffer.type.rank(), extents.shape(buffer.type.shape), static_cast<int>(buffer.storage), buffer.index,
                               buffer.first_step, buffer.last_step);
    }
    const std::string steps = steps_text(plan, kernel_symbols, extents);
    const auto pointer = [](size_t count, const char *name) { return count ? name : "0"; };
    const std::string program =
        fmt::format("static const scalide_program program = {{\n    SCALIDE_PLAN_VERSION, {}, {},\n    {},\n    {}, {}, {}, {}, {}, {}, "
                    "{}, {}, {}, {}, "
                    "{{0, 0}}}};\n\nconst scalide_program *{}_program(void) {{ return &program; }}\n",
                    quoted(plan.name), quoted(plan.target), quoted(plan.numerics), quoted(plan.hash), plan.symbols.size(),
                    plan.arguments.size(), plan.buffers.size(), plan.steps.size(), plan.scalar_count,
                    pointer(plan.symbols.size(), "symbols"), pointer(plan.arguments.size(), "arguments"),
                    pointer(plan.buffers.size(), "buffers"), pointer(plan.steps.size(), "steps"), to_identifier(plan.name));
    return "/* Generated by scalide build. */\n#include \"scalide/plan.h\"\n\n" + declarations + "\n" + extents.text() +
           table("scalide_symbol", "symbols", symbols) + table("scalide_argument", "arguments", arguments) +
           table("scalide_buffer", "buffers", buffers) + steps + "\n" + program;
}

} // namespace scalide
