#include "support/compiled/compiled_program.h"
#include "tool/common.h"
#include <algorithm>
#include <cstdlib>

namespace scalide {

namespace {

/// What a result of the fused program is of the arrays that were made.
Array part_of(const std::vector<HostArray> &arrays, const Result &result) {
    const auto array = std::ranges::find(arrays, result.part.array(result.name), &HostArray::name);
    if (array == arrays.end()) throw InternalError("no array " + result.name);
    return result.part.is_scale() ? Array{Dtype::f32, {}, {array->scale}} : to_tensor(*array);
}

} // namespace

BuildFolders build_folders() {
    const Home home = find_home("");
    return {home.rules, home.include};
}

CompiledProgram::CompiledProgram(const Program &program, const Rulebook &rulebook, const Policy &policy, const std::string &target,
                                 Unroll unroll) {
    BuildOptions options;
    options.unroll = unroll;
    options.target = target;
    options.policy = policy;
    options.output_folder = folder_.path;
    options.cache_folder = folder_.path / "cache";
    const Home home = find_home("");
    options.include_folder = home.include;
    options.runtime_library = home.runtime_library;
    options.shared_library = true;
    options.jobs = 1;
    if (const char *card = std::getenv("SCALIDE_CARD_ARCH"); card && target == "cuda") options.cuda_cards = {card};
    report_ = build_library({{program, ""}}, rulebook, options);
    loaded_ = std::make_unique<LoadedProgram>(report_.files.back(), report_.main().plan.name);
}

std::vector<HostArray> CompiledProgram::host_arrays(const std::vector<Array> &inputs) const {
    std::vector<HostArray> arrays;
    for (size_t i = 0; i < fused().arguments.size(); i++) {
        const Argument &argument = fused().arguments[i];
        if (argument.part.is_scale()) {
            arrays.back().scaled = true;
            arrays.back().scale = static_cast<float>(inputs.at(i).data.at(0));
        } else {
            arrays.push_back(to_array(argument.part.array(fused().value_name(argument.value)), inputs.at(i)));
        }
    }
    return arrays;
}

std::vector<Array> CompiledProgram::results(const std::vector<HostArray> &made) const {
    std::vector<Array> results;
    for (const Result &result : fused().results) results.push_back(part_of(made, result));
    return results;
}

std::vector<Array> CompiledProgram::run(const std::vector<Array> &inputs) const {
    const std::vector<HostArray> arrays = host_arrays(inputs);
    const auto find = [&](const std::string &name) {
        const auto found = std::ranges::find(arrays, name, &HostArray::name);
        if (found == arrays.end()) throw InternalError("no argument " + name);
        return *found;
    };
    return results(loaded_->run(find));
}

} // namespace scalide
