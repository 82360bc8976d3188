#include "support/compiled/compiled_program.h"
#include "emit/plan_text.h"
#include "tool/arrays.h"
#include <cmath>
#include <unistd.h>

namespace scalide {

namespace {

void check(scalide_status status, const scalide_context *context) {
    if (status != SCALIDE_OK) throw InternalError(scalide_message(context));
}

std::filesystem::path fresh_folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "scalide_test_XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw InternalError("no temporary folder");
    return pattern;
}

std::vector<std::string> argument_names(const Program &program) {
    std::vector<std::string> names;
    for (const Argument &argument : program.arguments) names.push_back(program.value_name(argument.value));
    return names;
}

/// Arrays as the library takes them: inputs and inouts, then room for the outputs.
std::vector<HostArray> host_arrays(const Program &fused, const std::vector<Array> &inputs) {
    std::vector<HostArray> arrays;
    for (const ArgumentGroup &group : group_pairs(argument_names(fused))) {
        arrays.push_back(to_array(group.name, inputs.at(static_cast<size_t>(group.data))));
        arrays.back().scaled = group.scale >= 0;
        if (group.scale >= 0) arrays.back().scale = static_cast<float>(inputs.at(static_cast<size_t>(group.scale)).data.at(0));
    }
    return arrays;
}

void add_outputs(scalide_context *context, const scalide_program *program, std::vector<HostArray> &arrays) {
    for (size_t i = arrays.size(); i < scalide_argument_count(program); i++) {
        scalide_argument_info info;
        check(scalide_describe_argument(program, i, &info), context);
        HostArray output;
        output.name = info.name;
        output.dtype = static_cast<Dtype>(info.dtype);
        output.scaled = info.scaled != 0;
        arrays.push_back(output);
    }
    std::vector<scalide_array> views;
    for (HostArray &array : arrays) views.push_back(array.view());
    check(scalide_shape_outputs(context, program, views.data(), views.size()), context);
    for (size_t i = 0; i < arrays.size(); i++) {
        if (!arrays[i].data.empty()) continue;
        arrays[i].shape.assign(views[i].extent, views[i].extent + views[i].rank);
        size_t bytes = static_cast<size_t>(size_of(arrays[i].dtype));
        for (const int64_t extent : arrays[i].shape) bytes *= static_cast<size_t>(extent);
        arrays[i].data.resize(bytes);
    }
}

/// The part of an array that a result of the fused program is: `x`, `x.data` or `x.scale`.
Array part_of(const std::vector<HostArray> &arrays, const std::string &name) {
    for (const HostArray &array : arrays) {
        if (name == array.name || (array.scaled && name == array.name + ".data")) return to_tensor(array);
        if (array.scaled && name == array.name + ".scale") return {Dtype::f32, {}, {array.scale}};
    }
    throw InternalError("no array " + name);
}

} // namespace

CompiledProgram::CompiledProgram(const Program &program, const Rulebook &rulebook, const Policy &policy) : folder_(fresh_folder()) {
    BuildOptions options;
    options.policy = policy;
    options.output_folder = folder_;
    options.cache_folder = folder_ / "cache";
    options.include_folder = SCALIDE_INCLUDE_FOLDER;
    options.runtime_library = SCALIDE_RUNTIME_LIBRARY;
    options.shared_library = true;
    options.jobs = 1;
    report_ = build_library(program, rulebook, options);
    check(scalide_context_create(nullptr, &context_), context_);
    check(scalide_load(context_, report_.files.back().c_str(), &library_), context_);
    program_ = scalide_library_program(context_, library_, to_identifier(report_.plan.name).c_str());
    if (!program_) throw InternalError(scalide_message(context_));
}

CompiledProgram::~CompiledProgram() {
    scalide_library_close(library_);
    scalide_context_destroy(context_);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

std::vector<Array> CompiledProgram::run(const std::vector<Array> &inputs) const {
    std::vector<HostArray> arrays = host_arrays(fused(), inputs);
    add_outputs(context_, program_, arrays);
    std::vector<scalide_array> views;
    for (HostArray &array : arrays) views.push_back(array.view());
    scalide_binding *binding = nullptr;
    check(scalide_bind(context_, program_, views.data(), views.size(), &binding), context_);
    const scalide_status status = scalide_run(binding);
    scalide_binding_destroy(binding);
    check(status, context_);
    std::vector<Array> results;
    for (const Result &result : fused().results) results.push_back(part_of(arrays, result.name));
    return results;
}

std::string compare(const Array &got, const Array &expected, double tolerance) {
    if (got.dtype != expected.dtype || got.shape != expected.shape) return "other dtype or shape";
    double largest = 1;
    for (const double value : expected.data) {
        if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
    const double bound = is_float(got.dtype) ? tolerance * largest : 0;
    for (size_t i = 0; i < got.data.size(); i++) {
        const double a = got.data[i], b = expected.data[i];
        if (a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= bound) continue;
        return "element " + std::to_string(i) + ": got " + std::to_string(a) + ", expected " + std::to_string(b);
    }
    return "";
}

} // namespace scalide
