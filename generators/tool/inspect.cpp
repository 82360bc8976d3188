#include "emit/library.h"
#include "ir/words.h"
#include "tool/common.h"
#include "tool/loop_list.h"
#include "tool/message_list.h"
#include "tool/table_filter.h"
#include "tool/tables.h"
#include "tool/written_tensors.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

namespace scalide {

namespace {

/// Measures the time of each pass, including the checks after it.
class PassCosts {
public:
    void add(const std::string &pass, const Program &made) {
        size_t nodes = made.nodes.size();
        for (const Program &callee : made.programs) nodes += callee.nodes.size();
        rusage usage = {};
        getrusage(RUSAGE_SELF, &usage);
        const double now = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
        if (!pass.empty()) fmt::print("{:<24} {:>9.3f} {:>9} {:>9.1f}\n", pass, now - before_, nodes, double(usage.ru_maxrss) / 1024);
        before_ = now;
    }
    static void print_head() { fmt::print("{:<24} {:>9} {:>9} {:>9}\n", "pass", "CPU s", "nodes", "peak MiB"); }

private:
    static double seconds_of(const timeval &time) { return double(time.tv_sec) + 1e-6 * double(time.tv_usec); }

    double before_ = 0;
};

struct InspectCommand {
    ProgramOptions program;
    TableFilter filter;
    BuildOptions build; ///< provides the target, its compute capabilities and whether the program is traceable
    bool costs = false;

    void run() const {
        const Rulebook rulebook = program.load_rulebook();
        const TargetFacts facts = target_facts(build);
        const Program loaded = program.load_program(rulebook);
        CompileOptions options{.policy = program.load_numerics(),
                               .facts = facts,
                               .checks_types = build.checks_types,
                               .takes_notes = true,
                               .splits_constants = true};
        PassCosts measured;
        if (costs) {
            PassCosts::print_head();
            measured.add("", loaded);
        }
        if (costs) options.after_pass = [&](const std::string &pass, const Program &made) { measured.add(pass, made); };
        const Compiled compiled = run_passes(loaded, rulebook, options, Stage::kernels);
        if (costs) return;
        print(compiled.notes.fusion, compiled.forms.main.origins);
        const std::string loops = list_loops(compiled.forms.main.program, facts.is_gpu);
        if (!loops.empty()) fmt::print("\nloops and branches:\n{}", loops);
        for (const std::string &left : compiled.notes.left_loops) fmt::print("  {}\n", left);
        const std::string messages = list_messages(compiled.forms.main.program);
        if (!messages.empty()) fmt::print("\nmessages between ranks:\n{}", messages);
        print(compiled.notes.copied);
        print_bytes(compiled.forms.main.program);
        print_bits(compiled.forms.main.program);
    }

    /// Prints whether results may differ in bits between runs, and for which matmuls.
    static void print_bits(const Program &fused) {
        std::vector<std::string> products;
        for (const Program &kernel : fused.programs)
            if (kernel.attributes.contains("library")) products.push_back(kernel.name);
        const std::string but = ", except for matmuls of cuBLASLt, where each bind may choose another algorithm: ";
        fmt::print("the same bits in every run, for every number of threads{}{}\n", products.empty() ? "" : but, fmt::join(products, ", "));
    }

    static void print_bytes(const Program &fused) {
        constexpr size_t most_named = 8;
        std::string line;
        for (const auto &[dtype, bytes] : bytes_written(fused))
            line += fmt::format("{} {} {:.0f}", line.empty() ? "writes" : ",", to_string(dtype), bytes);
        line = line.empty() ? "writes no floats" : line + " bytes";
        const auto wide = wide_intermediates(fused);
        for (size_t i = 0; i < std::min(wide.size(), most_named); i++)
            line += fmt::format("{}{} {:.0f}", i == 0 ? "; f32 intermediates: " : ", ", name_to_string(wide[i].first), wide[i].second);
        if (wide.size() > most_named) line += fmt::format(" and {} more", wide.size() - most_named);
        fmt::print("\n{}{}\n", line, fused.symbols.empty() ? "" : ", computed with 128 for each symbolic extent");
    }

    static void print(const std::vector<CopiedArgument> &copied) {
        if (!copied.empty()) fmt::print("\ncopied whole for an update of a part:\n");
        for (const auto &[update, reason] : copied)
            fmt::print("  {} ({}): {}\n", name_to_string(update.argument), short_place(update.location, "-"), reason);
    }

    /// A kernel, the tensors that it computes, and their names and scopes for the filter.
    struct ShownKernel {
        size_t number;
        std::vector<Origin> written = {};
        std::vector<RowSubject> subjects = {};
    };

    static std::vector<ShownKernel> numbered(const FusionReport &report, const std::map<std::string, Origin> &origins) {
        std::vector<ShownKernel> kernels;
        for (const KernelReport &kernel : report.kernels) {
            ShownKernel &shown = kernels.emplace_back(ShownKernel{kernels.size()});
            for (const std::string &value : kernel.values) {
                const auto found = origins.find(value);
                shown.written.push_back(found == origins.end() ? Origin{value, {}} : found->second);
                shown.subjects.push_back({shown.written.back().tensor, shown.written.back().scope});
            }
        }
        return kernels;
    }

    /// Prints the kernels that compute a tensor of the filter, and the edges between them and other kernels.
    void print(const FusionReport &report, const std::map<std::string, Origin> &origins) const {
        const bool has_gradient =
            std::ranges::any_of(origins, [](const auto &entry) { return entry.second.direction == Direction::backward; });
        std::vector<ShownKernel> shown = numbered(report, origins);
        filter.apply(shown);
        for (const auto &[number, written, subjects] : shown) {
            const KernelReport &kernel = report.kernels[number];
            fmt::print("{:>3}  {:<9} {}\n", number, kernel.kind, kernel.kernel);
            fmt::print("     computes    {}\n", in_words(written, has_gradient));
            fmt::print("     fuses       {}\n", fmt::join(kernel.fused, " "));
            if (!kernel.recomputed.empty()) fmt::print("     recomputes  {}\n", fmt::join(kernel.recomputed, " "));
            fmt::print("     reads {} bytes, writes {} bytes, {} FLOPs\n", to_string(kernel.bytes_read), to_string(kernel.bytes_written),
                       to_string(kernel.flops));
        }
        std::vector<UnfusedEdge> edges = report.edges;
        std::erase_if(edges, [&](const UnfusedEdge &edge) {
            const auto is_shown = [&](int kernel) {
                return std::ranges::count(shown, static_cast<size_t>(kernel), &ShownKernel::number) > 0;
            };
            return !is_shown(edge.producer) && !is_shown(edge.consumer);
        });
        if (!edges.empty()) fmt::print("\nnot fused:\n");
        for (const UnfusedEdge &edge : edges) {
            std::vector<std::string> values = edge.values;
            std::ranges::transform(values, values.begin(), name_to_string);
            fmt::print("{:>3} -> {:<3} {}: {}\n", edge.producer, edge.consumer, fmt::join(values, ", "), edge.reason);
        }
    }
};

} // namespace

void add_inspect(CLI::App &app) {
    const auto command = std::make_shared<InspectCommand>();
    CLI::App *inspect = app.add_subcommand(
        "inspect",
        "Print the kernels of a program: the tensors that they compute, their operators, bytes and FLOPs, and why other operators are "
        "not fused.");
    command->program.add_to(*inspect)->required();
    add_target(*inspect, command->build);
    add_verify(*inspect, command->build);
    command->filter.add_to(*inspect);
    inspect->add_flag("--costs", command->costs,
                      "Print the cost of each compiler pass instead: CPU seconds, nodes after the pass, peak memory.");
    inspect->callback([command] { command->run(); });
}

} // namespace scalide
