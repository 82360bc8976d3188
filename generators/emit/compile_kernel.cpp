#include "emit/compile_kernel.h"
#include "emit/cache.h"
#include "ir/text.h"

namespace scalide {

Halide::Target parse_target(const std::string &text) {
    if (text != "host" && !Halide::Target::validate_target_string(text)) {
        throw UserError({{}, "target", "must be 'host' or a target of Halide such as x86-64-linux-avx2-fma-f16c", "'" + text + "'", ""});
    }
    return Halide::Target(text)
        .with_feature(Halide::Target::NoRuntime)
        .with_feature(Halide::Target::NoAsserts)
        .with_feature(Halide::Target::NoBoundsQuery)
        .with_feature(Halide::Target::UserContext);
}

namespace {

// Halide's errors are no std::exception.
LoweredKernel lower_checked(const Program &program, const Halide::Target &target) {
    try {
        return lower(program, target);
    } catch (const Halide::Error &error) {
        throw InternalError(std::string(error.what()) + to_string(program));
    }
}

} // namespace

PreparedKernel prepare_kernel(const Program &kernel, const Halide::Target &target) {
    const Program program = canonical(kernel);
    PreparedKernel prepared{lower_checked(program, target), {}, "", ""};
    prepared.tiles = choose_tiles(prepared.lowered, target);
    std::string identity = to_string(program) + target.to_string() + SCALIDE_LOWERING_HASH SCALIDE_HALIDE_VERSION;
    for (const auto &[name, value] : prepared.tiles) identity += " " + name + "=" + std::to_string(value);
    prepared.key = hash_text(identity);
    prepared.symbol = "scalide_kernel_" + prepared.key;
    return prepared;
}

void compile_kernel(PreparedKernel &kernel, const Halide::Target &target, const std::string &object_file) {
    try {
        schedule(kernel.lowered, kernel.tiles, target);
        Halide::Pipeline(output_funcs(kernel.lowered))
            .compile_to_object(object_file, halide_arguments(kernel.lowered), kernel.symbol, target);
    } catch (const Halide::Error &error) { // no std::exception
        throw InternalError(error.what());
    }
}

} // namespace scalide
