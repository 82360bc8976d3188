#include "rulebook/calibration.h"
#include "tool/compiled_program.h"
#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <set>

namespace scalide {

namespace {

/// The policy that records the amax of each tensor, and the end of the names of its state.
constexpr const char *recording_policy = "f8_calibrate";
constexpr std::string_view recorded = ".amax";

/// Returns the text of a calibration file. Each amax has all digits of an f32.
std::string file_text(const Calibration &calibration, const std::vector<std::string> &files) {
    const auto quoted = [](const std::string &text) { return nlohmann::json(text).dump(); };
    std::string text =
        fmt::format("# The largest magnitude of each operand of a matmul or convolution, in {} {}.\nprogram: {}\namax:{}\n", files.size(),
                    files.size() == 1 ? "batch" : "batches", quoted(calibration.program), calibration.amax.empty() ? " {}" : "");
    for (const auto &[tensor, amax] : calibration.amax) text += fmt::format("  {}: {:.9g}\n", quoted(tensor), amax);
    return text;
}

struct CalibrateCommand {
    ProgramOptions program;
    BuildOptions build;
    std::vector<std::string> inputs;
    std::string output;

    void run() {
        check_limits(build);
        program.numerics = recording_policy;
        const Rulebook rulebook = program.load_rulebook();
        const Program loaded = program.load_program(rulebook);
        build.policy = program.load_numerics();
        const CompiledProgram compiled(loaded, rulebook, build, program.home);
        Calibration calibration{loaded.name, {}, {}};
        for (const std::string &file : inputs) record(compiled, loaded, file, calibration);
        write_file(output, file_text(calibration, inputs));
        fmt::print("{}: {} tensors from {} {}\n", output, calibration.amax.size(), inputs.size(), inputs.size() == 1 ? "file" : "files");
    }

    /// Each file is a batch of its own: the arguments of the program, also those that it updates, have the values of the file.
    static void record(const CompiledProgram &compiled, const Program &program, const std::string &file, Calibration &calibration) {
        const ArrayFile arrays(file);
        std::set<std::string> own; // the program may keep state itself
        for (const Argument &argument : program.arguments) own.insert(program.value_name(argument.value));
        const auto find = [&](const std::string &name) {
            HostArray array = compiled.find(name, arrays);
            if (std::ranges::count(array.shape, 0) > 0)
                throw UserError(
                    {Location{file}, name, "must have elements in a calibration", fmt::format("shape [{}]", fmt::join(array.shape, ", "))});
            return array;
        };
        const std::vector<HostArray> results = compiled.library.run(find);
        for (const HostArray &result : results) {
            const auto argument = std::ranges::find(compiled.plan().arguments, result.name, &PlanArgument::name);
            if (argument == compiled.plan().arguments.end() || argument->role != ArgumentRole::state || own.contains(result.name)) continue;
            const std::string tensor = result.name.substr(0, result.name.rfind(recorded)); // the name may end with a number
            const double amax = to_tensor(result).data.at(0);
            if (!std::isfinite(amax))
                throw UserError({Location{file}, tensor, "must be finite in a calibration", fmt::format("an amax of {}", amax),
                                 "'scalide run --check-finite' names the first operator with an infinity or a NaN"});
            double &largest = calibration.amax[tensor];
            largest = std::max(largest, amax);
        }
    }
};

} // namespace

void add_calibrate(CLI::App &app) {
    const auto command = std::make_shared<CalibrateCommand>();
    CLI::App *calibrate = app.add_subcommand(
        "calibrate", "Run a program on sample data, and write the largest magnitude of each matmul operand for the policy f8_static.");
    command->program.add_to(*calibrate)->required();
    calibrate->remove_option(calibrate->get_option("--numerics"));
    calibrate
        ->add_option("-i,--inputs", command->inputs,
                     "Safetensors file with the arguments of the program: one batch. Repeatable, the largest magnitude counts.")
        ->required();
    calibrate->add_option("-o,--output", command->output, "Calibration file (.yaml).")->required();
    add_target(*calibrate, command->build);
    add_limits(*calibrate, command->build);
    calibrate->add_option("--cache", command->build.cache_folder,
                          "Folder for compiled kernels. Default: $XDG_CACHE_HOME/scalide, else ~/.cache/scalide.");
    calibrate->callback([command] { command->run(); });
}

} // namespace scalide
