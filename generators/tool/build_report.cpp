#include "tool/build_report.h"
#include "ir/regions.h"
#include "ir/words.h"
#include "kinds/panel_layout.h"
#include "tool/tables.h"
#include "transforms/library/library_call.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace scalide {

namespace {

/// The resources of a kernel on one compute capability, for all its launches.
struct Use {
    int card = 0, launches = 0, registers = 0, spilled_bytes = 0, shared_bytes = 0;
};

std::vector<Use> by_card(const std::vector<CardUse> &launches) {
    std::map<int, Use> uses;
    for (const CardUse &launch : launches) {
        Use &use = uses[launch.card];
        use = {launch.card, use.launches + 1, std::max(use.registers, launch.registers), use.spilled_bytes + launch.spilled_bytes,
               std::max(use.shared_bytes, launch.shared_bytes)};
    }
    std::vector<Use> rows;
    for (const auto &[card, use] : uses) rows.push_back(use);
    return rows;
}

/// A form of a program of the report, with the prefix of the names of its kernels.
struct NamedForm {
    std::string prefix; ///< the program if there are several, and the CPU or the condition of a variant
    const BuiltForm &built;
    bool is_main; ///< the main program for the first target
};

std::vector<NamedForm> forms_of(const BuildReport &report) {
    std::vector<NamedForm> forms;
    for (const ProgramForms<BuiltForm> &machines : report.programs) {
        const std::string name = report.programs.size() == 1 ? "" : name_to_string(machines[0].main.form.program.name) + ".";
        for (const MachineForms<BuiltForm> &machine : machines) {
            const std::string prefix = machine.cpu.empty() ? name : name + machine.cpu + ".";
            forms.push_back({prefix, machine.main, machine.cpu.empty()});
            for (const BuiltForm &variant : machine.variants) forms.push_back({prefix + prefix_of(variant.form.when), variant, false});
            if (machine.prepare) forms.push_back({prefix + "prepare.", *machine.prepare, false});
        }
    }
    return forms;
}

/// A generated kernel. Equal kernels of several programs share one entry, which has the name of the first.
struct Kernel {
    std::string name, kind;
    size_t steps = 0;
    std::vector<Use> uses;
    bool runs_everywhere = false;
    std::set<int> cards = {}; ///< compute capabilities of variants that use it
};

/// The kernels of a variant run only on the GPUs of the variant, so other compute capabilities are removed.
void drop_unused(Kernel &kernel) {
    if (!kernel.runs_everywhere) std::erase_if(kernel.uses, [&](const Use &use) { return !kernel.cards.contains(use.card); });
}

std::vector<Kernel> kernels_of(const BuildReport &report) {
    std::vector<Kernel> kernels;
    std::map<std::string, size_t> known;
    for (const auto &[prefix, built, is_main] : forms_of(report)) {
        const std::vector<int> &cards = built.form.when.cards;
        for (const PlanStep &step : built.plan.steps) {
            if (step.collective) continue;
            const std::string &symbol = built.symbol(step.kernel);
            const auto [place, is_new] = known.emplace(symbol, kernels.size());
            if (is_new) {
                const auto uses = report.uses.find(symbol);
                kernels.push_back({prefix + step.kernel, built.kernel(step.kernel).attributes.at("kind").word, 0,
                                   by_card(uses == report.uses.end() ? std::vector<CardUse>() : uses->second)});
            }
            Kernel &kernel = kernels[place->second];
            kernel.steps++;
            kernel.runs_everywhere |= cards.empty();
            kernel.cards.insert(cards.begin(), cards.end());
        }
    }
    std::ranges::for_each(kernels, drop_unused);
    return kernels;
}

/// Returns a line for each packed constant that kernels read, such as "packed once: w.panels: bf16[2, 64, 64, 2]".
std::set<std::string> packed_constants(const BuildReport &report) {
    std::set<std::string> lines;
    each_built(report.programs, [&](const BuiltForm &built) {
        const Program &program = built.form.program;
        for (const Node &call : program.nodes) {
            if (call.op != "call" || !built.kernel(call.attributes.at("program").word).attributes.contains(panels_attribute)) continue;
            const Value &panels = program.values[size_t(call.operands.back())];
            lines.insert(fmt::format("packed once: {}: {}\n", panels.name, to_string(panels.type)));
        }
    });
    return lines;
}

/// A step that computes a matmul. Without a reason, a library computes it, unless bind finds that the library cannot.
struct Product {
    std::string step, library, reason;
    Location location; ///< of the matmul
    bool is_required;  ///< a library must compute it
};

/// Returns the location of the first call of a kernel.
Location location_of(const Program &fused, const std::string &kernel) {
    std::optional<Location> found;
    visit_programs(fused, [&](const Program &program) {
        for (const Node &node : program.nodes) {
            const auto called = node.attributes.find("program");
            if (!found && called != node.attributes.end() && called->second.word == kernel) found = node.location;
        }
    });
    return found.value_or(Location());
}

std::vector<Product> products_of(const BuildReport &report, const TargetFacts &facts) {
    std::vector<Product> products;
    if (facts.products.empty()) return products;
    for (const auto &[prefix, built, is_main] : forms_of(report)) {
        for (size_t s = 0; s < built.plan.steps.size(); s++) {
            if (built.plan.steps[s].collective) continue;
            const Program &kernel = built.kernel(built.plan.steps[s].kernel);
            const auto dot = std::ranges::find(kernel.nodes, "dot_general", &Node::op);
            if (dot == kernel.nodes.end()) continue;
            const Location location = location_of(built.form.program, kernel.name);
            const auto library = kernel.attributes.find("library");
            const bool is_call = library != kernel.attributes.end();
            products.push_back({fmt::format("step {} ({}{})", s, prefix, kernel.name), is_call ? library->second.word : "",
                                is_call ? "" : why_no_library(kernel, *dot, facts), location, built.plan.require_libraries});
        }
    }
    return products;
}

std::string to_string(const Product &product) {
    return fmt::format("{}: {}\n", product.step, product.reason.empty() ? product.library : "generated kernel, because " + product.reason);
}

const char *noun_of(const ProductFormats &formats) {
    if (formats.convolutions == 0) return "matmuls";
    return formats.convolutions == formats.products ? "convolutions" : "matmuls and convolutions";
}

/// Returns "18 of 18 matmuls in f8" or "12 of 18 matmuls in f8, 2 in f16".
std::string products_by_format(const ProductFormats &formats) {
    if (formats.narrow.empty()) return fmt::format("0 of {} {} in 8 or 16 bits", formats.products, noun_of(formats));
    std::string text;
    for (const auto &[format, count] : formats.narrow)
        text += text.empty() ? fmt::format("{} of {} {} in {}", count, formats.products, noun_of(formats), format)
                             : fmt::format(", {} in {}", count, format);
    return text;
}

/// bf16 has the range of f32 and needs no scale.
std::string scaling_of(const ProductFormats &formats) {
    const std::string own = formats.own > 0 ? fmt::format(", {} of them in formats that the program chose itself", formats.own) : "";
    if (formats.unscaled > 0) return own + fmt::format(", {} of them not scaled", formats.unscaled);
    const size_t in_bf16 = formats.narrow.contains("bf16") ? formats.narrow.at("bf16") : 0;
    if (formats.narrow_products() <= in_bf16 + formats.own) return own;
    return own + (formats.own > 0 ? ", all others scaled" : ", all scaled") + (in_bf16 > 0 ? " except in bf16" : "");
}

/// Returns ", 3 kept by keep_head.yaml:5".
std::string kept_by(const ProductFormats &formats) {
    std::string text;
    for (const auto &[rule, count] : formats.kept)
        text += fmt::format(", {} kept by {}", count, short_place({rule.first, rule.second}, ""));
    return text;
}

/// Returns ", 2 of them with one scale for each block of 32".
std::string blocks_of(const ProductFormats &formats) {
    std::string text;
    for (const auto &[block, count] : formats.blocks)
        text += fmt::format(", {} of them with one scale for each {}", count, described_block(block));
    return text;
}

/// Returns "state: 2 arrays in f16, scaled by a bound, rounded by hashed_round and 1 in f32 and 1 of the policy; ".
std::string states_of(const ProductFormats &formats) {
    std::string text;
    const auto add = [&](size_t count, const std::string &words) {
        text += fmt::format("{}{}{} {}", text.empty() ? "state: " : " and ", count, text.empty() ? count == 1 ? " array" : " arrays" : "",
                            words);
    };
    for (const auto &[words, count] : formats.states) add(count, "in " + words);
    if (formats.policy_states > 0) add(formats.policy_states, "of the policy");
    return text.empty() ? "" : text + "; ";
}

std::string arrays(size_t count) { return fmt::format("{} array{}", count, count == 1 ? "" : "s"); }

/// Returns "; warning: step.scl:12 updates a part of table, but each run copies all of it, because ..." for the first such arguments.
std::string copies_of(const BuildReport &report) {
    constexpr size_t most_named = 2;
    std::string text;
    for (size_t i = 0; i < std::min(report.copied.size(), most_named); i++) {
        const auto &[update, reason] = report.copied[i];
        text += fmt::format("; warning: {} updates a part of {}, but each run copies all of it, because {}",
                            short_place(update.location, "the program"), name_to_string(update.argument), reason);
    }
    if (report.copied.size() > most_named)
        text += fmt::format("; warning: each run copies {} more ('scalide inspect' lists them)", arrays(report.copied.size() - most_named));
    return text;
}

/// Returns the low-precision share of the bytes of floats that kernels write, in percent.
double narrow_share(const BuildReport &report) {
    double all = 0, narrow = 0;
    for (const NamedForm &form : forms_of(report)) {
        if (!form.is_main) continue;
        for (const auto &[dtype, bytes] : bytes_written(form.built.form.program)) {
            all += bytes;
            if (size_of(dtype) < 4) narrow += bytes;
        }
    }
    return all == 0 ? 0 : 100 * narrow / all;
}

std::string ordinal(int64_t number) {
    const int64_t last = number % 10;
    const bool is_teen = number / 10 % 10 == 1;
    return std::to_string(number) + (is_teen || last < 1 || last > 3 ? "th" : last == 1 ? "st" : last == 2 ? "nd" : "rd");
}

} // namespace

std::string numerics_line(const BuildReport &report) {
    std::string line = report.main().plan.numerics + ": ";
    if (report.products.products > 0)
        line += products_by_format(report.products) + scaling_of(report.products) + blocks_of(report.products) + kept_by(report.products) +
                "; ";
    line += states_of(report.products);
    line += fmt::format("{:.0f} % of bytes in 8 or 16 bits", narrow_share(report));
    if (report.products.own_conversions > 0)
        line += "; the program itself converts " + arrays(report.products.own_conversions) + " to 8 bits without a scale";
    for (const auto &[count, format] : {std::pair{report.products.unsafe_conversions, "8 bits"}, {report.products.unsafe_halves, "f16"}})
        if (count > 0)
            line += fmt::format("; warning: the policy converts {} to {} without a scale ('scalide explain' lists them)", arrays(count),
                                format);
    if (report.products.saturating > 0)
        line += "; warning: is_finite depends on " + arrays(report.products.saturating) +
                " that the policy may saturate, because their scales do not come from their data";
    return line + copies_of(report);
}

void check_libraries(const BuildReport &report, const TargetFacts &facts) {
    for (const Product &product : products_of(report, facts)) {
        if (!product.is_required || product.reason.empty()) continue;
        throw UserError({product.location, product.step, "must be computed by a library, because libraries are required",
                         "a generated kernel, because " + product.reason, "Change the matmul, or allow kernels (libraries: optional)"});
    }
}

std::string exceptions_of(const BuildReport &report, const TargetFacts &facts) {
    std::string text;
    for (const Kernel &kernel : kernels_of(report))
        for (const Use &use : kernel.uses)
            if (use.spilled_bytes > 0)
                text += fmt::format("{} spills {} bytes of registers on sm_{}\n", kernel.name, use.spilled_bytes, use.card);
    for (const Product &product : products_of(report, facts))
        if (!product.reason.empty()) text += to_string(product);
    for (const std::string &left : report.left_to_kernels) text += left + "\n";
    return text;
}

std::string statistics_line(const BuildReport &report) {
    size_t tensors = 0;
    std::set<int64_t> steps;
    for (const auto &collected : report.statistics) {
        tensors += collected.size();
        for (const CollectedStatistic &tensor : collected) steps.insert(tensor.every);
    }
    if (report.statistics.empty()) return "";
    std::string runs;
    for (const int64_t every : steps) runs += fmt::format("{}{}", runs.empty() ? "" : " or ", ordinal(every));
    return fmt::format("statistics: {} tensors, in each {} run\n", tensors, runs);
}

std::string table_of(const BuildReport &report, const TargetFacts &facts) {
    const std::vector<Kernel> kernels = kernels_of(report);
    const bool has_cards = std::ranges::any_of(kernels, [](const Kernel &kernel) { return !kernel.uses.empty(); });
    size_t width = 6;
    for (const Kernel &kernel : kernels) width = std::max(width, kernel.name.size());
    std::string text = fmt::format("{:<{}}  kind       steps{}\n", "kernel", width,
                                   has_cards ? "  GPU     launches  registers  spilled  shared bytes" : "");
    for (const Kernel &kernel : kernels) {
        const std::string row = fmt::format("{:<{}}  {:<9} {:>6}", kernel.name, width, kernel.kind, kernel.steps);
        if (kernel.uses.empty()) text += row + "\n";
        for (const Use &use : kernel.uses)
            text += fmt::format("{}  sm_{:<4} {:>8}  {:>9}  {:>7}  {:>12}\n", row, use.card, use.launches, use.registers, use.spilled_bytes,
                                use.shared_bytes);
    }
    for (const std::string &line : packed_constants(report)) text += line;
    for (const Product &product : products_of(report, facts)) text += to_string(product);
    for (const std::string &left : report.left_to_kernels) text += left + "\n";
    return text;
}

} // namespace scalide
