#include "kernels/compiled_kernel.h"
#include "kernels/checked_accesses.h"
#include "kernels/guarded_memory.h"
#include "lower/halide/amx_feature.h"
#include "lower/halide/halide_warnings.h"
#include "schedules/schedule.h"
#include <HalideRuntime.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <map>
#include <sys/syscall.h>
#include <unistd.h>

namespace scalide {
namespace {

std::filesystem::path make_temporary_folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "scalide_kernel_XXXXXX").string();
    return mkdtemp(pattern.data());
}

std::string run_command(const std::string &command) {
    std::string output;
    FILE *pipe = popen((command + " 2>&1").c_str(), "r");
    char buffer[4096];
    while (size_t count = fread(buffer, 1, sizeof buffer, pipe)) {
        output.append(buffer, count);
    }
    if (pclose(pipe) != 0) {
        throw std::runtime_error(command + ": " + output);
    }
    return output;
}

/// Asks the system for permission to use tiles of AMX.
void request_tiles() {
    constexpr int arch_req_xcomp_perm = 0x1023, tile_data = 18;
    if (syscall(SYS_arch_prctl, arch_req_xcomp_perm, tile_data) != 0) throw std::runtime_error("the system permits no AMX tiles");
}

constexpr size_t inout_alignment = 64; ///< what bind asks for

size_t bytes_of(const Type &type, const Extent::Bindings &symbols) {
    return size_t(element_count(type.shape).evaluate(symbols)) * size_t(size_of(type.dtype));
}

/// Elements between the rows of an array with strides. The number is odd, so that rows begin at any alignment.
constexpr int gap = 3;
constexpr uint8_t in_gaps = 0x5a;

/// A halide_buffer_t of this shape over `data`.
struct Buffer {
    halide_buffer_t buffer{};
    std::vector<halide_dimension_t> dims;
    size_t width; ///< bytes of an element

    Buffer(void *data, const Type &type, const Extent::Bindings &symbols, bool strided)
        : dims(type.shape.size()), width(size_t(size_of(type.dtype))) {
        int stride = 1;
        for (size_t d = 0; d < dims.size(); d++) {
            int extent = int(type.shape[dims.size() - 1 - d].evaluate(symbols));
            dims[d] = {0, extent, stride, 0};
            stride = stride * extent + (strided ? gap : 0);
        }
        buffer.host = static_cast<uint8_t *>(data);
        buffer.dim = dims.data();
        buffer.dimensions = int(dims.size());
    }

    /// Calls visit(place in bytes) for each element, in row-major order.
    template<typename Visit>
    void for_each_element(Visit visit) const {
        visit_axis(dims.size(), 0, visit);
    }
    /// Returns the bytes from the first element to the last one.
    size_t bytes() const {
        size_t end = 0;
        for_each_element([&](size_t place) { end = place + width; });
        return end;
    }
    void write(const Words &words) const {
        std::fill_n(buffer.host, bytes(), in_gaps);
        size_t next = 0;
        for_each_element([&](size_t place) { std::copy_n(&words[width * next++], width, buffer.host + place); });
    }
    Words read() const {
        Words words;
        for_each_element([&](size_t place) { words.insert(words.end(), buffer.host + place, buffer.host + place + width); });
        return words;
    }
    /// True if nothing between the elements has changed since write().
    bool has_clean_gaps() const {
        Words rest(buffer.host, buffer.host + bytes());
        for_each_element([&](size_t place) { std::fill_n(&rest[place], width, in_gaps); });
        return std::ranges::all_of(rest, [](uint8_t byte) { return byte == in_gaps; });
    }

private:
    template<typename Visit>
    void visit_axis(size_t d, size_t place, const Visit &visit) const {
        if (d == 0) return visit(place * width);
        for (int i = 0; i < dims[d - 1].extent; i++) visit_axis(d - 1, place + size_t(i) * size_t(dims[d - 1].stride), visit);
    }
};

} // namespace

Halide::Target with_tiles(Halide::Target target) {
    for (const auto other : {Halide::Target::AVX512_Zen4, Halide::Target::AVX512_Zen5}) target = target.without_feature(other);
    target.processor_tune = Halide::Target::ProcessorGeneric;
    using Halide::Target;
    for (const auto feature : {Target::SSE41, Target::AVX, Target::AVX2, Target::FMA, Target::F16C, Target::AVX512, Target::AVX512_Skylake,
                               Target::AVX512_Cannonlake, Target::AVX512_SapphireRapids, amx_feature})
        target = target.with_feature(feature);
    return target;
}

Halide::Target kernel_target() {
    const Halide::Target host = Halide::get_host_target()
                                    .with_feature(Halide::Target::NoRuntime)
                                    .with_feature(Halide::Target::NoAsserts)
                                    .with_feature(Halide::Target::NoBoundsQuery)
                                    .with_feature(Halide::Target::UserContext);
    if (!std::getenv("SCALIDE_TEST_TILES")) return host;
    request_tiles();
    return with_tiles(host);
}

std::string assembly_of(const Program &program, const Halide::Target &target) {
    LoweredKernel kernel = lower(program, target, choose_budgets(target));
    schedule(kernel, choose_tiles(kernel, target), target);
    const std::filesystem::path folder = make_temporary_folder();
    to_pipeline(kernel).compile_to_assembly(folder / "kernel.s", halide_arguments(kernel), "k", target);
    std::ifstream stream(folder / "kernel.s");
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    std::filesystem::remove_all(folder);
    return text;
}

size_t count_words(const std::string &text, const std::string &word) {
    size_t count = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) count++;
    return count;
}

CompiledKernel::CompiledKernel(const Program &program, const Halide::Target &target, Accesses accesses) try {
    kernel_ = lower(program, target, choose_budgets(target));
    schedule(kernel_, choose_tiles(kernel_, target), target);
    folder_ = make_temporary_folder();
    const std::string object = (folder_ / "kernel.o").string(), library = (folder_ / "kernel.so").string();
    Halide::Pipeline pipeline = to_pipeline(kernel_);
    if (accesses == Accesses::checked) check_accesses(pipeline, kernel_);
    is_checked_ = accesses == Accesses::checked;
    std::map<Halide::OutputFileType, std::string> files = {{Halide::OutputFileType::object, object}};
    if (std::getenv("SCALIDE_KEEP_KERNELS")) {
        files[Halide::OutputFileType::assembly] = (folder_ / "kernel.s").string();
        files[Halide::OutputFileType::stmt] = (folder_ / "kernel.stmt").string();
        fprintf(stderr, "%s\n", folder_.c_str());
    }
    const HalideWarnings warnings;
    pipeline.compile_to(files, halide_arguments(kernel_), "kernel", target);
    warnings.check();
    run_command("cc -shared -o " + library + " " + object);
    library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library_) {
        throw std::runtime_error(dlerror());
    }
    entry_ = reinterpret_cast<int (*)(void **)>(dlsym(library_, "kernel_argv"));
} catch (const Halide::Error &error) {
    throw std::runtime_error(std::string("Halide: ") + error.what()); // the test framework knows std::exception only by our own type info
}

CompiledKernel::~CompiledKernel() {
    dlclose(library_);
    if (!std::getenv("SCALIDE_KEEP_KERNELS")) {
        std::filesystem::remove_all(folder_);
    }
}

void CompiledKernel::call(const std::vector<void *> &operands, const Extent::Bindings &symbols, bool strided) const {
    const std::vector<KernelOperand> order = call_order(kernel_);
    std::vector<Buffer> buffers;
    std::vector<int> sizes;
    buffers.reserve(order.size());
    sizes.reserve(order.size());
    void *context = nullptr;
    std::vector<void *> argv = {&context};
    for (size_t i = 0; i < order.size(); i++) {
        if (order[i].kind == KernelOperand::Kind::symbol) {
            sizes.push_back(int(symbols.at(order[i].symbol)));
            argv.push_back(&sizes.back());
        } else {
            buffers.emplace_back(operands[i], order[i].type, symbols, strided && order[i].strided);
            argv.push_back(&buffers.back().buffer);
        }
    }
    if (entry_(argv.data()) != 0) {
        throw std::runtime_error("the kernel failed");
    }
    if (const std::string wrong = take_wrong_access(); !wrong.empty()) throw std::runtime_error("the kernel leaves an array: " + wrong);
}

std::vector<Words> CompiledKernel::run(std::vector<Words> &arguments, const Extent::Bindings &symbols, Guard guard) const {
    const bool reads_strides =
        std::ranges::any_of(call_order(kernel_), [](const KernelOperand &operand) { return operand.strided && operand.type.rank() > 1; });
    if (!reads_strides || is_checked_) return run_once(arguments, symbols, guard, false); // the checks know dense arrays only
    std::vector<Words> same = arguments;
    std::vector<Words> results = run_once(arguments, symbols, guard, false);
    if (run_once(same, symbols, guard, true) != results || same != arguments)
        throw std::runtime_error("the kernel gives other results for arrays with strides");
    return results;
}

std::vector<Words> CompiledKernel::run_once(std::vector<Words> &arguments, const Extent::Bindings &symbols, Guard guard,
                                            bool strided) const {
    const std::vector<KernelOperand> order = call_order(kernel_);
    std::vector<GuardedMemory> memory;
    std::vector<void *> operands;
    std::map<int, void *> of_argument;
    const auto buffer_of = [&](size_t i) { return Buffer(operands[i], order[i].type, symbols, strided && order[i].strided); };
    for (const KernelOperand &operand : order) {
        bool is_result = operand.kind == KernelOperand::Kind::result;
        int argument = is_result ? kernel_.program.results[operand.index].argument : operand.index;
        const size_t bytes = Buffer(nullptr, operand.type, symbols, strided && operand.strided).bytes();
        memory.emplace_back(bytes, is_result && argument >= 0 ? inout_alignment : size_t(size_of(operand.type.dtype)), guard);
        operands.push_back(memory.back().data());
        const Buffer buffer = buffer_of(operands.size() - 1);
        if (argument >= 0) {
            buffer.write(arguments[argument]);
            of_argument[argument] = memory.back().data();
        } else if (strided) {
            buffer.write(Words(bytes_of(operand.type, symbols)));
        }
    }
    for (size_t i = 0; i < order.size(); i++) // an argument that a result overwrites has the memory of the result
        if (order[i].kind == KernelOperand::Kind::argument) operands[i] = of_argument.at(order[i].index);
    call(operands, symbols, strided);
    std::vector<Words> results(kernel_.program.results.size());
    for (size_t i = 0; i < order.size(); i++) {
        if (order[i].kind == KernelOperand::Kind::symbol) continue;
        operands[i] = memory[i].data();
        const Buffer buffer = buffer_of(i);
        const Words words = buffer.read();
        if (!memory[i].is_intact() || (strided && !buffer.has_clean_gaps()))
            throw std::runtime_error("the kernel writes beside operand " + std::to_string(i));
        if (order[i].kind == KernelOperand::Kind::result) {
            int argument = kernel_.program.results[order[i].index].argument;
            (argument >= 0 ? arguments[argument] : results[order[i].index]) = words;
        } else if (words != arguments[order[i].index]) {
            throw std::runtime_error("the kernel writes to argument " + std::to_string(order[i].index));
        }
    }
    return results;
}

std::vector<std::string> CompiledKernel::undefined_symbols() const {
    std::istringstream lines(run_command("nm -u " + (folder_ / "kernel.o").string()));
    std::vector<std::string> names;
    for (std::string letter, name; lines >> letter >> name;) {
        names.push_back(name);
    }
    return names;
}

} // namespace scalide
