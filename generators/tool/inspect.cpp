#include "emit/library.h"
#include "tool/common.h"
#include "transforms/numerics/numerics_report.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace scalide {

namespace {

struct InspectCommand {
    ProgramOptions program;
    BuildOptions build; ///< its target, its cards, and whether it is traceable

    void run() const {
        const Rulebook rulebook = program.load_rulebook();
        const TargetFacts facts = target_facts(build);
        FusionReport report;
        const Program fused =
            compile(program.load_program(rulebook), rulebook, {program.load_numerics(), facts, {}, &report, nullptr, build.checks_types});
        print(report);
        print_bytes(fused);
        print_bits(fused);
    }

    /// What may give other bits from one run to the next.
    static void print_bits(const Program &fused) {
        std::vector<std::string> products;
        for (const Program &kernel : fused.programs)
            if (kernel.attributes.contains("library")) products.push_back(kernel.name);
        const std::string but = ", but for products of cuBLASLt, which may find another algorithm at each bind: ";
        fmt::print("the same bits in every run, for every number of threads{}{}\n", products.empty() ? "" : but, fmt::join(products, ", "));
    }

    static void print_bytes(const Program &fused) {
        constexpr size_t most_named = 8;
        std::string line;
        for (const auto &[dtype, bytes] : bytes_written(fused))
            line += fmt::format("{} {} {:.0f}", line.empty() ? "writes" : ",", to_string(dtype), bytes);
        line += " bytes";
        const auto wide = wide_intermediates(fused);
        for (size_t i = 0; i < std::min(wide.size(), most_named); i++)
            line += fmt::format("{}{} {:.0f}", i == 0 ? "; could be narrower: " : ", ", wide[i].first, wide[i].second);
        if (wide.size() > most_named) line += fmt::format(" and {} more", wide.size() - most_named);
        fmt::print("\n{}{}\n", line, fused.symbols.empty() ? "" : ", an extent that is not given taken as 128");
    }

    static void print(const FusionReport &report) {
        for (size_t i = 0; i < report.kernels.size(); i++) {
            const KernelReport &kernel = report.kernels[i];
            fmt::print("{:>3}  {:<9} {}\n", i, kernel.kind, kernel.kernel);
            fmt::print("     fuses       {}\n", fmt::join(kernel.fused, " "));
            if (!kernel.recomputed.empty()) fmt::print("     recomputes  {}\n", fmt::join(kernel.recomputed, " "));
            fmt::print("     reads {} bytes, writes {} bytes, {} FLOPs\n", to_string(kernel.bytes_read), to_string(kernel.bytes_written),
                       to_string(kernel.flops));
        }
        if (!report.edges.empty()) fmt::print("\nnot fused:\n");
        for (const UnfusedEdge &edge : report.edges) {
            fmt::print("{:>3} -> {:<3} {}: {}\n", edge.producer, edge.consumer, fmt::join(edge.values, ", "), edge.reason);
        }
    }
};

} // namespace

void add_inspect(CLI::App &app) {
    const auto command = std::make_shared<InspectCommand>();
    CLI::App *inspect =
        app.add_subcommand("inspect", "show the kernels of a program: what each fused, bytes, FLOPs, and why other edges are not fused");
    command->program.add_to(*inspect)->required();
    add_target(*inspect, command->build);
    add_verify(*inspect, command->build);
    inspect->callback([command] { command->run(); });
}

} // namespace scalide
