#include "support/compiled/compiled_program.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <unistd.h>

namespace scalide {

namespace {

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

/// Arrays as the library takes them: inputs and inouts.
std::vector<HostArray> host_arrays(const Program &fused, const std::vector<Array> &inputs) {
    std::vector<HostArray> arrays;
    for (const ArgumentGroup &group : group_pairs(argument_names(fused))) {
        arrays.push_back(to_array(group.name, inputs.at(static_cast<size_t>(group.data))));
        arrays.back().scaled = group.scale >= 0;
        if (group.scale >= 0) arrays.back().scale = static_cast<float>(inputs.at(static_cast<size_t>(group.scale)).data.at(0));
    }
    return arrays;
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

CompiledProgram::CompiledProgram(const Program &program, const Rulebook &rulebook, const Policy &policy, const std::string &target)
    : folder_(fresh_folder()) {
    BuildOptions options;
    options.target = target;
    options.policy = policy;
    options.output_folder = folder_;
    options.cache_folder = folder_ / "cache";
    options.include_folder = SCALIDE_INCLUDE_FOLDER;
    options.runtime_library = SCALIDE_RUNTIME_LIBRARY;
    options.shared_library = true;
    options.jobs = 1;
    if (const char *card = std::getenv("SCALIDE_CARD_ARCH"); card && target == "cuda") options.cuda_cards = {card};
    report_ = build_library({{program, ""}}, rulebook, options);
    loaded_ = std::make_unique<LoadedProgram>(report_.files.back(), report_.plans[0].name);
}

CompiledProgram::~CompiledProgram() {
    loaded_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

std::vector<Array> CompiledProgram::run(const std::vector<Array> &inputs) const {
    const std::vector<HostArray> arrays = host_arrays(fused(), inputs);
    const auto find = [&](const std::string &name) {
        const auto found = std::ranges::find(arrays, name, &HostArray::name);
        if (found == arrays.end()) throw InternalError("no argument " + name);
        return *found;
    };
    const std::vector<HostArray> made = loaded_->run(find);
    std::vector<Array> results;
    for (const Result &result : fused().results) results.push_back(part_of(made, result.name));
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
