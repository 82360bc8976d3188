#include "lower/math/elementwise.h"
#include "support/folder.h"
#include "support/unary_functions.h"
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <regex>
#include <sstream>

namespace scalide {
namespace {

// AVX-512 without half precision arithmetic, whatever machine the test runs on.
const char *target = "x86-64-linux-avx-avx2-avx512-avx512_skylake-f16c-fma-sse41-no_asserts-no_bounds_query-no_runtime";

struct Code {
    std::string undefined; ///< what `nm -u` prints of the object
    std::string assembly;
};

std::string output_of(const std::string &command) {
    std::string text;
    FILE *pipe = popen(command.c_str(), "r");
    char buffer[256];
    while (fgets(buffer, sizeof(buffer), pipe)) text += buffer;
    EXPECT_EQ(pclose(pipe), 0) << command;
    return text;
}

Code compile(const std::string &name, Halide::Expr (*lower)(const Halide::Expr &)) {
    Halide::Var x("x");
    Halide::ImageParam in(Halide::Float(32), 1);
    Halide::Func f(name + "_kernel");
    f(x) = lower(in(x));
    f.vectorize(x, 16, Halide::TailStrategy::RoundUp);
    const test::Folder folder;
    const std::string object = folder.file(name + ".o"), assembly = folder.file(name + ".s");
    f.compile_to({{Halide::OutputFileType::object, object}, {Halide::OutputFileType::assembly, assembly}}, {in}, f.name(),
                 Halide::Target(target));
    std::ostringstream text;
    text << std::ifstream(assembly).rdbuf();
    return {output_of("nm -u '" + object + "'"), text.str()};
}

TEST(lower, functions_are_vector_code_without_libm) {
    // Arithmetic on one number at a time: mulss, addsd, divss ...
    static const std::regex scalar("\tv?(add|sub|mul|div|sqrt|fn?m(add|sub)[0-9]+)s[sd]\t");
    static const std::regex vector("\tv?[a-z0-9]+p[sd]\t[^\n]*%zmm");
    for (const test::UnaryFunction &function : test::unary_functions()) {
        Code code = compile(function.name, function.lower);
        EXPECT_EQ(code.undefined, "") << function.name;
        EXPECT_FALSE(std::regex_search(code.assembly, scalar)) << function.name;
        EXPECT_TRUE(std::regex_search(code.assembly, vector)) << function.name;
    }
}

} // namespace
} // namespace scalide
