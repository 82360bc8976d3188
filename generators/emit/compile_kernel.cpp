#include "emit/compile_kernel.h"
#include "emit/files.h"
#include "emit/host_code.h"
#include "emit/kernel_facts.h"
#include "emit/wide_accesses.h"
#include "expr/error.h"
#include "ir/text.h"
#include "lower/halide/halide_warnings.h"
#include "schedules/schedule.h"
#include "transforms/analysis/costs.h"
#include <algorithm>

namespace scalide {

std::string words_of(const Halide::Error &error) {
    std::string words = error.what();
    words.erase(words.find_last_not_of(" \n") + 1);
    return words == "Error:" ? "Halide failed an assertion without a text; HL_DEBUG_CODEGEN=1 shows where" : words;
}

namespace {

// Converts Halide's errors, which do not derive from std::exception.
LoweredKernel lower_checked(const Program &program, const Halide::Target &target) {
    try {
        return lower(program, target, choose_budgets(target));
    } catch (const Halide::Error &error) {
        throw InternalError(words_of(error) + "\n" + to_string(program));
    }
}

// The name of the facts file depends on all inputs of lowering and of the choice of tiles.
std::string facts_file(const std::string &lowering) { return hash_text(lowering + hash_text(tile_inputs())) + ".json"; }

KernelFacts facts_of(const Program &program, const Halide::Target &target, const std::string &lowering, const ObjectCache &cache) {
    if (const auto content = cache.read(facts_file(lowering)))
        if (auto facts = parse_facts(*content)) return *facts;
    const LoweredKernel lowered = lower_checked(program, target);
    const KernelFacts facts{choose_tiles(lowered, target), call_order(lowered)};
    cache.insert_content(facts_file(lowering), to_json(facts));
    return facts;
}

// Halide reports a file that cannot be opened as an internal error; this function reports a UserError.
void write_object(const Halide::Module &module, const std::string &file) {
    try {
        module.compile({{Halide::OutputFileType::object, file}});
    } catch (const Halide::Error &error) {
        if (words_of(error).find("opening output") == std::string::npos) throw;
        throw UserError(failed_action("write " + file, words_of(error), "Check the free space of the disk"));
    }
}

/// Returns the name that profilers show: the first operators that compute, and the key. `scalide_dot_general_add_max_<key>`.
std::string symbol_of(const Program &kernel, const std::string &key) {
    constexpr size_t most_operators = 4;
    std::vector<std::string> operators;
    for (const Node &node : kernel.nodes) {
        const bool computes = shape_of(node) != Shape::movement && shape_of(node) != Shape::source && node.op != "convert_element_type";
        if (computes && operators.size() < most_operators && !std::ranges::count(operators, node.op)) operators.push_back(node.op);
    }
    if (operators.empty()) operators.push_back(kernel.attributes.at("kind").word);
    std::string symbol = "scalide_";
    for (const std::string &op : operators) symbol += op + "_";
    return symbol + key;
}

} // namespace

bool is_prepared(const Program &kernel, const Halide::Target &target, const ObjectCache &cache) {
    return !cache.find(facts_file(lowering_key(canonical(kernel), target, lowering_hashes()))).empty();
}

PreparedKernel prepare_kernel(const Program &kernel, const KernelTarget &target, const ObjectCache &cache) {
    PreparedKernel prepared{canonical(kernel), {}, {}, "", ""};
    const std::string lowering = lowering_key(prepared.program, target.halide, lowering_hashes());
    KernelFacts facts = facts_of(prepared.program, target.halide, lowering, cache);
    prepared.tiles = std::move(facts.tiles);
    prepared.call_order = std::move(facts.call_order);
    prepared.key = kernel_key(lowering, prepared.tiles, assembly_key(target));
    prepared.symbol = symbol_of(prepared.program, prepared.key);
    return prepared;
}

std::vector<CardUse> compile_kernel(const PreparedKernel &kernel, const KernelTarget &target, const std::string &object_file) {
    const bool is_on_device = target.halide.has_gpu_feature();
    std::vector<CardUse> uses;
    try {
        LoweredKernel lowered = lower(kernel.program, target.halide, choose_budgets(target.halide));
        schedule(lowered, kernel.tiles, target.halide);
        Halide::Pipeline pipeline = to_pipeline(lowered);
        if (is_on_device) adapt_host_code(pipeline);
        if (target.cuda) widen_accesses(pipeline);
        const HalideWarnings warnings;
        Halide::Module module = pipeline.compile_to_module(halide_arguments(lowered), kernel.symbol, target.halide);
        warnings.check();
        if (is_on_device) check_host_code(module);
        if (target.cuda && has_device_code(module)) {
            const WorkFolder folder(std::filesystem::temp_directory_path() / "scalide");
            module = with_device_code(module, assemble(module, *target.cuda, folder.path(), uses, resident_threads(kernel.tiles)));
        }
        write_object(module, object_file);
    } catch (const Halide::Error &error) { // does not derive from std::exception
        throw InternalError(words_of(error));
    }
    return uses;
}

} // namespace scalide
