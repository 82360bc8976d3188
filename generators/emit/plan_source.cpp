#include "emit/c_text.h"
#include "emit/plan_text.h"
#include "ir/words.h"
#include "transforms/forms/value_forms.h"
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <ranges>
#include <set>

namespace scalide {

namespace {

// The numbers of enumerations below `emit`, which the plan has too.
template<typename T>
constexpr bool is_number(T value, int number) {
    return static_cast<int>(value) == number;
}
static_assert(is_number(ArrayPart::Kind::whole, SCALIDE_WHOLE) && is_number(ArrayPart::Kind::data, SCALIDE_DATA) &&
              is_number(ArrayPart::Kind::scale, SCALIDE_SCALE));
static_assert(is_number(ScaleLayout::none, SCALIDE_SCALES_NONE) && is_number(ScaleLayout::outer_vec, SCALIDE_SCALES_OUTER_VEC) &&
              is_number(ScaleLayout::vec128, SCALIDE_SCALES_VEC128) && is_number(ScaleLayout::blk128x128, SCALIDE_SCALES_BLK128X128) &&
              is_number(ScaleLayout::vec32_ue8m0, SCALIDE_SCALES_VEC32_UE8M0));
static_assert(is_number(SymbolSource::ranks, SCALIDE_RANKS) && is_number(SymbolSource::rank, SCALIDE_RANK) &&
              is_number(SymbolSource::chunk, SCALIDE_CHUNK));
static_assert(is_number(StatisticPart::amax, SCALIDE_PART_AMAX) && is_number(StatisticPart::scale, SCALIDE_PART_SCALE) &&
              is_number(StatisticPart::large_squares, SCALIDE_PART_LARGE_SQUARES) &&
              is_number(StatisticPart::small_squares, SCALIDE_PART_SMALL_SQUARES) && is_number(StatisticPart::zeros, SCALIDE_PART_ZEROS) &&
              is_number(StatisticPart::saturated, SCALIDE_PART_SATURATED) && is_number(StatisticPart::subnormal, SCALIDE_PART_SUBNORMAL) &&
              is_number(StatisticPart::non_finite, SCALIDE_PART_NON_FINITE) &&
              is_number(StatisticPart::first_non_finite, SCALIDE_PART_FIRST) &&
              is_number(StatisticPart::categories, SCALIDE_PART_CATEGORIES));
static_assert(statistic_parts == SCALIDE_STATISTIC_PARTS && statistic_bins == SCALIDE_STATISTIC_BINS &&
              statistic_categories == SCALIDE_STATISTIC_CATEGORIES);
static_assert(most_form_symbols == SCALIDE_TERM_SYMBOLS);

// Writes extents as tables, each distinct polynomial and shape once.
class ExtentTables {
public:
    ExtentTables(const std::string &prefix, const std::vector<Symbol> &symbols) : prefix_(prefix), symbols_(symbols) {}

    // Returns the C expression for a shape, which is a pointer to its extents.
    std::string shape(const Extents &shape) {
        if (shape.empty()) return "0";
        const auto found = std::ranges::find(shapes_, shape);
        const size_t index = static_cast<size_t>(found - shapes_.begin());
        if (found == shapes_.end()) shapes_.push_back(shape);
        return fmt::format("{}shape{}", prefix_, index);
    }

    std::string text() const {
        std::string terms, extents;
        for (size_t i = 0; i < shapes_.size(); i++) {
            std::string rows;
            for (size_t axis = 0; axis < shapes_[i].size(); axis++) {
                const Extent::Terms polynomial = shapes_[i][axis].terms();
                if (polynomial.empty()) {
                    rows += "{0, 0}, ";
                    continue;
                }
                terms += fmt::format("static const scalide_term {}term{}_{}[] = {{", prefix_, i, axis);
                for (const auto &[monomial, coefficient] : polynomial) terms += term(monomial, coefficient);
                terms += "};\n";
                rows += fmt::format("{{{}term{}_{}, {}}}, ", prefix_, i, axis, polynomial.size());
            }
            extents += fmt::format("static const scalide_extent {}shape{}[] = {{{}}};\n", prefix_, i, rows);
        }
        return terms + extents;
    }

private:
    std::string term(const Extent::Monomial &monomial, int64_t coefficient) const {
        std::string factors;
        for (size_t k = 0; k < SCALIDE_TERM_SYMBOLS; k++) {
            const auto found = k < monomial.size() ? std::ranges::find(symbols_, monomial[k], &Symbol::name) : symbols_.end();
            factors += fmt::format("{}, ", found == symbols_.end() ? -1 : found - symbols_.begin());
        }
        internal_check(monomial.size() <= SCALIDE_TERM_SYMBOLS,
                       fmt::format("plan: an extent multiplies at most {} symbols", SCALIDE_TERM_SYMBOLS));
        return fmt::format("{{{}, {{{}}}}}, ", coefficient, factors);
    }

    const std::string &prefix_;
    const std::vector<Symbol> &symbols_;
    std::vector<Extents> shapes_;
};

std::string table(const std::string &type, const std::string &name, const std::string &rows) {
    if (rows.empty()) return "";
    return fmt::format("static const {} {}[] = {{\n{}}};\n", type, name, rows);
}

std::string matmul_row(const PlanMatmul &matmul, ExtentTables &extents) {
    const MatmulForm &form = matmul.form;
    const Extents sizes{form.batch,           form.m, form.n, form.k, form.lhs.leading, form.lhs.batch_stride, form.rhs.leading,
                        form.rhs.batch_stride};
    return fmt::format("    {{{}, {}, {}, {}, {}, {:d}, {:d}, {}, {}, {}, {}, {}, {}, {:d}, {:d}, {:d}, {:d}, {}}},\n", matmul.lhs,
                       matmul.rhs, matmul.result, matmul.lhs_scales, matmul.rhs_scales, static_cast<int>(matmul.scales.lhs),
                       static_cast<int>(matmul.scales.rhs), matmul.factor, matmul.bias, matmul.addend, matmul.addend_factor,
                       matmul.result_factor, matmul.amax, matmul.fast_accumulation, matmul.tf32, form.lhs.k_contiguous,
                       form.rhs.k_contiguous, extents.shape(sizes));
}

std::string collective_tables(const PlanCollective &collective, const std::string &name) {
    std::string moved;
    for (const auto &[from, to] : collective.arrays) moved += fmt::format("    {{{}, {}}},\n", from, to);
    const std::string location = short_location(collective.location);
    return table("scalide_moved", name + "_arrays", moved) +
           fmt::format("static const scalide_collective {0} = {{{1}, {2}, {3}, {0}_arrays, {4}}};\n", name,
                       static_cast<int>(collective.kind), collective.group, collective.arrays.size(),
                       location.empty() ? "0" : to_c_string(location));
}

std::string steps_text(const BuiltForm &built, const std::string &prefix, ExtentTables &extents) {
    const Plan &plan = built.plan;
    std::string operands, steps;
    for (size_t s = 0; s < plan.steps.size(); s++) {
        std::string rows;
        for (const PlanOperand &operand : plan.steps[s].operands) {
            rows += operand.is_symbol ? fmt::format("    {{SCALIDE_OPERAND_SYMBOL, {}, 0, 0, 0}},\n", operand.index)
                                      : fmt::format("    {{SCALIDE_OPERAND_BUFFER, {}, {}, {}, {:d}}},\n", operand.index,
                                                    operand.type.rank(), extents.shape(operand.type.shape), operand.strided);
        }
        operands += table("scalide_operand", fmt::format("{}operands{}", prefix, s), rows);
        const auto &matmul = plan.steps[s].matmul;
        if (matmul) operands += table("scalide_matmul", fmt::format("{}matmul{}", prefix, s), matmul_row(*matmul, extents));
        if (const auto &collective = plan.steps[s].collective) {
            operands += collective_tables(*collective, fmt::format("{}collective{}", prefix, s));
            steps += fmt::format("    {{{}, 0, 0, 0, 0, &{}collective{}}},\n", to_c_string(plan.steps[s].kernel), prefix, s);
            continue;
        }
        steps += fmt::format("    {{{}, {}_argv, {}operands{}, {}, {}, 0}},\n", to_c_string(plan.steps[s].kernel),
                             built.symbol(plan.steps[s].kernel), prefix, s, plan.steps[s].operands.size(),
                             matmul ? fmt::format("{}matmul{}", prefix, s) : "0");
    }
    return operands + table("scalide_step", prefix + "steps", steps);
}

std::string numbers_text(const std::vector<int> &numbers) {
    return numbers.empty() ? "" : fmt::format("    {},\n", fmt::join(numbers, ", "));
}

/// Writes the tables of block number `index`, and appends its entry to `rows`.
std::string block_tables(const PlanBlock &block, const std::string &name, ExtentTables &extents, std::string &rows) {
    std::string moved, carries;
    for (const PlanRow &row : block.rows) moved += fmt::format("    {{{}, {}, {:d}}},\n", row.buffer, row.of, row.is_written);
    for (const PlanCarry &carry : block.carries) carries += fmt::format("    {{{}, {}, {}}},\n", carry.init, carry.before, carry.after);
    const auto pointer = [&](size_t count, const char *part) { return count ? name + part : "0"; };
    const std::string location = short_location(block.location);
    rows += fmt::format("    {{{}, {}, {}, {}, {}, {}, {}, {}, {}, {:d}, {}, {}, ", to_c_string(block.name),
                        location.empty() ? "0" : to_c_string(location), static_cast<int>(block.kind), block.parent, block.first_step,
                        block.end_step, block.length ? extents.shape({*block.length}) : "0", block.condition, block.step, block.reverse,
                        block.most_steps, block.test_end);
    rows += fmt::format("{}, {}, {}, {}, {}, {}, {}, {}}},\n", pointer(block.branch_ends.size(), "_branches"), block.branch_ends.size(),
                        block.rows.size(), block.carries.size(), block.results.size(), pointer(block.rows.size(), "_rows"),
                        pointer(block.carries.size(), "_carries"), pointer(block.results.size(), "_results"));
    return table("int32_t", name + "_branches", numbers_text(block.branch_ends)) + table("scalide_row", name + "_rows", moved) +
           table("scalide_carry", name + "_carries", carries) + table("int32_t", name + "_results", numbers_text(block.results));
}

std::string blocks_text(const Plan &plan, const std::string &prefix, ExtentTables &extents) {
    std::string tables, rows;
    for (size_t i = 0; i < plan.blocks.size(); i++)
        tables += block_tables(plan.blocks[i], fmt::format("{}block{}", prefix, i), extents, rows);
    return tables + table("scalide_block", prefix + "blocks", rows);
}

using Machine = MachineForms<BuiltForm>;

/// Returns the prefix of the table names of a main program.
std::string prefix_of(const Machine &machine) {
    const std::string prefix = to_identifier(machine.main.plan.name) + "_";
    return machine.cpu.empty() ? prefix : prefix + "on_" + to_identifier(machine.cpu) + "_";
}

/// Returns the prefix of the table names of a variant.
std::string prefix_of(const Machine &machine, const BuiltForm &variant) {
    const FormCondition &when = variant.form.when;
    std::string prefix = prefix_of(machine);
    if (!when.cards.empty()) prefix += "on_" + std::to_string(when.cards[0]) + "_";
    for (const auto &[symbol, value] : when.values) prefix += fmt::format("with_{}_{}_", to_identifier(symbol), value);
    return prefix;
}

std::string prefix_of_prepare(const Machine &machine) { return prefix_of(machine) + "prepare_"; }

/// Returns the entry of a program for a compute capability, or for some CPUs if it is 0. `address`: of the program, a C expression.
std::string machine_row(const std::string &address, int card) { return fmt::format("    {{{}, {}, 0, {{0}}, {{0}}}},\n", card, address); }

/// Returns the entry of a variant for values of symbols.
std::string values_row(const Machine &machine, const BuiltForm &variant) {
    const std::vector<Symbol> &known = variant.plan.symbols;
    const Extent::Bindings &when = variant.form.when.values;
    std::string symbols, values;
    for (const auto &[name, value] : when) {
        symbols += std::to_string(std::ranges::find(known, name, &Symbol::name) - known.begin()) + ", ";
        values += std::to_string(value) + ", ";
    }
    return fmt::format("    {{0, &{}plan, {}, {{{}}}, {{{}}}}},\n", prefix_of(machine, variant), when.size(), symbols, values);
}

/// Returns the entries of the variants of a machine: by compute capability, then for values of symbols.
std::vector<std::string> variant_rows(const Machine &machine) {
    std::map<int, std::string> by_card;
    for (const int card : machine.main.form.when.cards) by_card[card] = machine_row("0", card);
    for (const BuiltForm &variant : machine.variants)
        for (const int card : variant.form.when.cards) by_card[card] = machine_row("&" + prefix_of(machine, variant) + "plan", card);
    std::vector<std::string> rows;
    for (const auto &[card, row] : by_card) rows.push_back(row);
    for (const BuiltForm &variant : machine.variants)
        if (!variant.form.when.values.empty()) rows.push_back(values_row(machine, variant));
    return rows;
}

// The rows of the tables of a plan.

std::string symbol_rows(const Plan &plan, ExtentTables &extents) {
    std::string rows;
    for (const Symbol &symbol : plan.symbols) {
        const auto group = std::ranges::find(plan.symbols, symbol.group, &Symbol::name);
        const bool is_chunk = symbol.source == SymbolSource::chunk;
        rows +=
            fmt::format("    {{{}, {}, {}, {}, {}, {}, {}}},\n", to_c_string(symbol.name), symbol.minimum, symbol.maximum, symbol.multiple,
                        static_cast<int>(symbol.source), group == plan.symbols.end() ? -1 : group - plan.symbols.begin(),
                        is_chunk ? extents.shape({symbol.divided}) : "0");
    }
    return rows;
}

std::string argument_rows(const Plan &plan) {
    std::string rows;
    for (const PlanArgument &argument : plan.arguments)
        rows += fmt::format("    {{{}, {}, {}, {}, {}}},\n", to_c_string(argument.name), static_cast<int>(argument.role),
                            argument.data_buffer, argument.scale_buffer, argument.initial);
    return rows;
}

std::string buffer_rows(const Plan &plan, ExtentTables &extents) {
    std::string rows;
    for (const PlanBuffer &buffer : plan.buffers) {
        const std::string location = short_location(buffer.origin.location);
        rows +=
            fmt::format("    {{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}},\n", to_c_string(buffer.name),
                        static_cast<int>(buffer.type.dtype), buffer.type.rank(), extents.shape(buffer.type.shape),
                        static_cast<int>(buffer.storage), buffer.index, buffer.first_step, buffer.last_step,
                        static_cast<int>(buffer.part.kind), to_c_string(buffer.part.of), location.empty() ? "0" : to_c_string(location));
    }
    return rows;
}

std::string requirement_rows(const Plan &plan, ExtentTables &extents) {
    std::string rows;
    for (const Requirement &requirement : plan.requirements)
        rows += fmt::format("    {{{}, {}, {}}},\n", to_c_string(requirement.name), to_c_string(to_string(requirement)),
                            extents.shape({requirement.extent - requirement.least}));
    return rows;
}

/// `prepare` and `statistics` are the C expressions for the addresses of the prepare program and of the table of statistics.
std::string program_text(const BuiltForm &built, const std::string &prefix, size_t variant_count, const std::string &prepare,
                         const std::string &statistics = "0") {
    const Plan &plan = built.plan;
    ExtentTables extents(prefix, plan.symbols);
    const std::string symbols = symbol_rows(plan, extents), arguments = argument_rows(plan), buffers = buffer_rows(plan, extents),
                      requirements = requirement_rows(plan, extents);
    const std::string steps = steps_text(built, prefix, extents), blocks = blocks_text(plan, prefix, extents);
    const auto pointer = [&](size_t count, const char *table) { return count ? prefix + table : "0"; };
    const std::string numbers = fmt::format("{}, {}, {}, {}, {}", plan.symbols.size(), plan.arguments.size(), plan.buffers.size(),
                                            plan.steps.size(), plan.scalar_count);
    const std::string tables =
        fmt::format("{}, {}, {}, {}", pointer(plan.symbols.size(), "symbols"), pointer(plan.arguments.size(), "arguments"),
                    pointer(plan.buffers.size(), "buffers"), pointer(plan.steps.size(), "steps"));
    return extents.text() + table("scalide_symbol", prefix + "symbols", symbols) +
           table("scalide_argument", prefix + "arguments", arguments) + table("scalide_buffer", prefix + "buffers", buffers) +
           table("scalide_requirement", prefix + "requirements", requirements) + steps + blocks +
           fmt::format(
               "\nstatic const scalide_program {0}plan = {{\n    SCALIDE_PLAN_VERSION, {1}, {7}, {2},\n    {3},\n    {4}, {5}, {6}, "
               "{8}, {9}, {10}, {11}, {12}, {13}, {14:d}, {15}, {16}, {17}}};\n",
               prefix, to_c_string(plan.name), to_c_string(plan.target), to_c_string(plan.numerics), to_c_string(plan.hash), numbers,
               tables, static_cast<int>(plan.device), variant_count, pointer(variant_count, "variants"), plan.requirements.size(),
               pointer(plan.requirements.size(), "requirements"), prepare, signature_of(plan), plan.require_libraries, plan.blocks.size(),
               pointer(plan.blocks.size(), "blocks"), statistics);
}

/// Returns the text of the forms for a machine. The prepare program and the variants are written first, because the tables of the main
/// program refer to them. `others`: the entries of the variants for other CPUs.
std::string machine_text(const Machine &machine, const std::vector<std::string> &others, const std::string &statistics = "0") {
    std::string text, prepare = "0";
    std::vector<std::string> variants = variant_rows(machine);
    variants.insert(variants.end(), others.begin(), others.end());
    if (machine.prepare) {
        text += program_text(*machine.prepare, prefix_of_prepare(machine), 0, "0");
        prepare = "&" + prefix_of_prepare(machine) + "plan";
    }
    for (const BuiltForm &variant : machine.variants) text += program_text(variant, prefix_of(machine, variant), 0, prepare);
    const std::string prefix = prefix_of(machine);
    return text + table("scalide_variant", prefix + "variants", fmt::format("{}", fmt::join(variants, ""))) +
           program_text(machine.main, prefix, variants.size(), prepare, statistics);
}

std::string text_or_null(const std::string &text) { return text.empty() ? "0" : to_c_string(text); }

/// Writes the table of the tensors of a statistics program.
std::string statistics_text(const Machine &machine) {
    const std::string prefix = prefix_of(machine);
    const std::string own_prefix = prefix + "tensors_";
    ExtentTables extents(own_prefix, machine.main.plan.symbols);
    std::string rows;
    for (const auto &[collected, arguments] : machine.main.plan.statistics) {
        const StatisticsSite &site = collected.site;
        rows += fmt::format("    {{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {{{}}}, {}, {{{}}}}},\n",
                            to_c_string(site.tensor), to_c_string(site.use), to_c_string(site.source.op), to_c_string(site.source.scope),
                            text_or_null(short_location(site.source.location)), text_or_null(short_location(collected.row)),
                            to_c_string(std::string(to_string(site.source.direction))), static_cast<int>(site.format),
                            collected.shape.size(), extents.shape(collected.shape), collected.every, collected.bins.first_exponent,
                            collected.bins.octaves, collected.collects, fmt::join(collected.categories.first, ", "),
                            static_cast<int>(collected.categories.makes_infinities_finite), fmt::join(arguments, ", "));
    }
    return extents.text() + table("scalide_collected", prefix + "tensors", rows) +
           fmt::format("static const scalide_statistics_plan {0}table = {{&{0}plan, {1}, {0}tensors}};\n", prefix,
                       machine.main.plan.statistics.size());
}

/// Returns the text of a program for all machines. `statistics`: the C expression for the address of its statistics.
std::string machines_text(const ProgramForms<BuiltForm> &machines, const std::string &statistics = "0") {
    std::string text;
    std::vector<std::string> others;
    for (const Machine &machine : machines | std::views::drop(1)) {
        text += machine_text(machine, {});
        others.push_back(machine_row("&" + prefix_of(machine) + "plan", 0));
    }
    text += machine_text(machines[0], others, statistics);
    if (!machines[0].main.plan.statistics.empty()) return text + statistics_text(machines[0]);
    return text + fmt::format("\nconst scalide_program *{0}program(void) {{ return &{0}plan; }}\n", prefix_of(machines[0]));
}

/// A statistics program follows the program to which it belongs, which refers to it.
std::string programs_text(const BuiltPrograms &programs) {
    std::string text;
    for (size_t i = 0; i < programs.size(); i++) {
        const bool has_statistics = i + 1 < programs.size() && !programs[i + 1][0].main.plan.statistics.empty();
        if (has_statistics) text += "\n" + machines_text(programs[i + 1]);
        text += "\n" + machines_text(programs[i], has_statistics ? "&" + prefix_of(programs[i + 1][0]) + "table" : "0");
        i += has_statistics;
    }
    return text;
}

/// Returns the prefixes of all forms of a program.
std::vector<std::string> prefixes_of(const ProgramForms<BuiltForm> &machines) {
    std::vector<std::string> prefixes;
    for (const Machine &machine : machines) {
        prefixes.push_back(prefix_of(machine));
        for (const BuiltForm &variant : machine.variants) prefixes.push_back(prefix_of(machine, variant));
        if (machine.prepare) prefixes.push_back(prefix_of_prepare(machine));
    }
    return prefixes;
}

} // namespace

std::string short_location(const Location &location) {
    return location.line == 0 ? "" : fmt::format("{}:{}", std::filesystem::path(location.file).filename().string(), location.line);
}

void check_identifiers(const BuiltPrograms &programs) {
    std::map<std::string, std::string> known;
    for (const ProgramForms<BuiltForm> &machines : programs) {
        const std::string &name = machines[0].main.plan.name;
        for (const std::string &prefix : prefixes_of(machines)) {
            const auto [other, is_new] = known.emplace(upper(prefix), name); // prefixes of enumerators, which are in capitals
            if (is_new) continue;
            const std::string got = name_to_string(other->second) + " and " + name_to_string(name);
            throw UserError(statement({}, "programs " + got + " of one library have the same C name, " + to_identifier(name),
                                      "Rename one. The names must differ in more than capital letters"));
        }
    }
}

std::string plan_source(const BuiltPrograms &programs) {
    std::set<std::string> symbols;
    each_built(programs, [&](const BuiltForm &built) {
        for (const auto &[name, kernel] : built.kernels) symbols.insert(kernel.symbol);
    });
    std::string text = "/* Generated by scalide build. */\n#include \"scalide/plan.h\"\n\n";
    for (const std::string &symbol : symbols) text += fmt::format("int {}_argv(void **args);\n", symbol);
    return text + programs_text(programs);
}

} // namespace scalide
