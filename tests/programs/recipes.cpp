#include "guarded/child.h"
#include "ir/text.h"
#include "support/compiled/compiled_program.h"
#include "support/programs/program_of_compositions.h"
#include "support/programs/program_of_operators.h"
#include "support/programs/program_of_shapes.h"
#include "support/programs/random_recipe.h"
#include "support/programs/rules.h"
#include "support/rounding_errors/running_error.h"
#include "transforms/pipeline.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <map>

// Random programs in random policies with state, several steps on the state of the step before. Values and states of each step agree with
// the interpreter, and a run that stops and goes on from a file in another process has the bits of one that does not. The long run is
// labelled slow.

namespace scalide {

namespace {

using HostArrays = std::map<std::string, HostArray>;

constexpr int steps = 4;

struct Drawn {
    Program program;
    std::string recipe;
};

Program draw_program(unsigned seed, std::mt19937 &random) {
    switch (seed % 8) {
    case 0: return with_scopes(program_of_operators(random, 1 + int(random() % 6)), random);
    case 1: return with_scopes(program_of_compositions(seed / 8, random), random);
    case 2:
    case 3: return with_scopes(program_of_shapes(random, 2 + int(random() % 6)), random);
    default: return random_training_step(random, 1 + int(random() % 5));
    }
}

Drawn draw(unsigned seed) {
    std::mt19937 random(seed);
    Program program = draw_program(seed, random);
    return {std::move(program), random_recipe(random)};
}

Extent::Bindings draw_sizes(const Program &program, std::mt19937 &random) {
    const int64_t extents[] = {1, 2, 3, 4, 7, 8, 17, 33};
    Extent::Bindings sizes;
    for (const Symbol &symbol : program.symbols)
        sizes[symbol.name] =
            std::clamp(extents[random() % std::size(extents)], symbol.minimum, symbol.maximum) / symbol.multiple * symbol.multiple;
    return sizes;
}

/// A run of a library in which nothing is bound twice: arrays stay where they are from step to step.
class BoundRun {
public:
    BoundRun(const std::filesystem::path &library, const std::string &name) : context_(open_context(SCALIDE_CPU).handle) {
        check(scalide_load(context_.get(), library.c_str(), &library_));
        program_ = scalide_library_program(context_.get(), library_, name.c_str());
        if (!program_) throw std::runtime_error(scalide_message(context_.get()));
    }
    ~BoundRun() {
        scalide_binding_destroy(binding_);
        scalide_library_close(library_);
    }
    BoundRun(const BoundRun &) = delete;
    BoundRun &operator=(const BoundRun &) = delete;

    /// Binds at the first call. Later calls give the inputs alone: the run keeps its state.
    void step(const HostArrays &arrays) {
        if (!binding_) return bind(arrays);
        for (size_t i = 0; i < arrays_.size(); i++)
            if (infos_[i].role == SCALIDE_INPUT) assign(arrays_[i], arrays.at(arrays_[i].name));
        check(scalide_run(binding_));
    }
    /// The arrays that a step writes.
    std::vector<HostArray> written() const {
        std::vector<HostArray> made;
        for (size_t i = 0; i < arrays_.size(); i++)
            if (infos_[i].role != SCALIDE_INPUT) made.push_back(arrays_[i]);
        return made;
    }

private:
    void check(scalide_status status) const {
        if (status != SCALIDE_OK) throw std::runtime_error(scalide_message(context_.get()));
    }
    static void assign(HostArray &to, const HostArray &from) {
        std::ranges::copy(from.data, to.data.begin());
        to.scale = from.scale;
    }
    void bind(const HostArrays &arrays) {
        infos_.resize(scalide_argument_count(program_));
        for (size_t i = 0; i < infos_.size(); i++) {
            check(scalide_describe_argument(program_, i, &infos_[i]));
            HostArray array;
            array.name = infos_[i].name;
            array.dtype = static_cast<Dtype>(infos_[i].dtype);
            array.scaled = infos_[i].scaled != 0;
            arrays_.push_back(infos_[i].role == SCALIDE_OUTPUT ? array : arrays.at(array.name));
        }
        std::vector<scalide_array> views;
        for (HostArray &array : arrays_) views.push_back(array.view());
        check(scalide_shape_outputs(context_.get(), program_, views.data(), views.size()));
        for (size_t i = 0; i < views.size(); i++) {
            if (infos_[i].role == SCALIDE_OUTPUT) {
                arrays_[i].shape.assign(views[i].extent, views[i].extent + views[i].rank);
                arrays_[i].data.resize(bytes_of(views[i]));
            }
            views[i] = arrays_[i].view();
        }
        check(scalide_bind(context_.get(), program_, views.data(), views.size(), &binding_));
        check(scalide_run(binding_));
    }

    ContextPointer context_;
    scalide_library *library_ = nullptr;
    const scalide_program *program_ = nullptr;
    scalide_binding *binding_ = nullptr;
    std::vector<scalide_argument_info> infos_;
    std::vector<HostArray> arrays_;
};

HostArrays by_name(std::vector<HostArray> arrays) {
    HostArrays map;
    for (HostArray &array : arrays) map.emplace(array.name, array);
    return map;
}

/// What a step was given, and what it made.
struct Step {
    HostArrays given;
    std::vector<HostArray> made;
};

bool is_carried(const Program &fused, size_t argument) {
    return std::ranges::any_of(fused.results, [&](const Result &result) { return result.argument == static_cast<int>(argument); });
}

/// Inputs that grow and shrink from step to step, zeros too. State begins with its initial value.
std::vector<Array> draw_step(const Program &fused, const Extent::Bindings &sizes, const std::vector<Array> &before, std::mt19937 &random) {
    static constexpr double factors[] = {1, 1, 1, 0, 0x1p-20, 40, 3000};
    std::vector<Array> inputs = draw_inputs(fused, sizes, random);
    const double factor = factors[random() % std::size(factors)];
    for (size_t i = 0; i < inputs.size(); i++) {
        const Argument &argument = fused.arguments[i];
        if (argument.initial) std::ranges::fill(inputs[i].data, static_cast<double>(*argument.initial));
        if (is_carried(fused, i) || inputs[i].dtype != Dtype::f32 || argument.part.is_scale()) continue;
        for (double &element : inputs[i].data) element = round_to(Dtype::f32, factor * element);
    }
    for (size_t r = 0; r < before.size(); r++)
        if (fused.results[r].argument >= 0) inputs[static_cast<size_t>(fused.results[r].argument)] = before[r];
    return inputs;
}

/// The newest element of the amax history of an argument is the largest magnitude of what the step was given, to the bit.
void expect_amax(const Policy &policy, const Program &fused, const std::vector<Array> &inputs, const std::vector<Array> &results) {
    for (size_t r = 0; r < results.size(); r++) {
        const std::string &name = fused.results[r].name;
        const size_t dot = std::min(name.rfind('.'), name.size() - 1);
        const PolicyState *state = policy.find_state(name.substr(dot + 1));
        const auto tensor = std::ranges::find(fused.arguments, name.substr(0, dot),
                                              [&](const Argument &argument) { return fused.value_name(argument.value); });
        if (!state || state->next.op != "update_amax_history" || state->per != PolicyState::Per::tensor) continue;
        if (tensor == fused.arguments.end()) continue;
        const Array &given = inputs[static_cast<size_t>(tensor - fused.arguments.begin())];
        double amax = 0;
        for (const double element : given.data) amax = std::max(amax, std::abs(round_to(given.dtype, element)));
        EXPECT_EQ(results[r].data[0], amax) << name;
    }
}

/// Runs the steps, and compares each with `reference` in the interpreter.
std::vector<Step> run_steps(const CompiledProgram &compiled, const Program &reference, const Policy &policy, std::mt19937 &random) {
    const Extent::Bindings sizes = draw_sizes(compiled.fused(), random);
    BoundRun run(compiled.library(), compiled.name());
    std::vector<Step> all;
    std::vector<Array> before;
    for (int step = 0; step < steps; step++) {
        SCOPED_TRACE("step " + std::to_string(step) + " with " + testing::PrintToString(sizes));
        const std::vector<Array> inputs = draw_step(compiled.fused(), sizes, before, random);
        all.push_back({by_name(compiled.host_arrays(inputs)), {}});
        run.step(all.back().given);
        all.back().made = run.written();
        before = compiled.results(all.back().made);
        EXPECT_EQ(difference(before, interpret_with_errors(reference, inputs, rules(), Mode::stored)), "");
        expect_amax(policy, compiled.fused(), inputs, before);
    }
    return all;
}

/// Throws if a process that goes on from the state in a file, after `stop` steps, ends with other bits.
void resume(const CompiledProgram &compiled, const std::vector<Step> &all, size_t stop, const std::string &file) {
    BoundRun run(compiled.library(), compiled.name());
    const ArrayFile saved(file);
    HostArrays first = all[stop].given;
    for (const HostArray &array : all[stop - 1].made)
        if (first.contains(array.name)) first[array.name] = saved.find(array.name);
    run.step(first);
    for (size_t step = stop + 1; step < all.size(); step++) run.step(all[step].given);
    const std::vector<HostArray> made = run.written();
    for (size_t i = 0; i < made.size(); i++) {
        const HostArray &expected = all.back().made[i];
        if (made[i].data != expected.data || std::memcmp(&made[i].scale, &expected.scale, sizeof(float)) != 0)
            throw std::runtime_error(made[i].name + " has other bits");
    }
}

class Recipes : public testing::TestWithParam<unsigned> {};

void run(unsigned seed) {
    const Drawn drawn = draw(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + drawn.recipe + to_string(drawn.program));
    try {
        CompileOptions options;
        options.policy = parse_policy(drawn.recipe, "recipe.yaml");
        const CompiledProgram compiled(drawn.program, rules(), options.policy);
        std::mt19937 random(seed);
        // Fusion stores intermediates in another format.
        const bool is_stored = options.policy.intermediates.has_value();
        const Program reference = is_stored ? compiled.fused() : to_base_operators(drawn.program, rules(), options);
        const std::vector<Step> all = run_steps(compiled, reference, options.policy, random);
        const size_t stop = 1 + random() % (steps - 1);
        const test::Folder folder;
        std::vector<HostArray> saved = all[stop - 1].made;
        write_arrays(folder.file("state.safetensors"), saved);
        const ChildReport report = in_child([&](const auto &) { resume(compiled, all, stop, folder.file("state.safetensors")); });
        EXPECT_EQ(report.wrong, "") << "resumed after " << stop << " steps";
    } catch (const std::exception &error) {
        ADD_FAILURE() << error.what();
    }
}

TEST_P(Recipes, steps_equal_interpreted_and_resume) { run(GetParam()); }

std::string name_of(const testing::TestParamInfo<unsigned> &test) { return std::to_string(test.param); }

INSTANTIATE_TEST_SUITE_P(sample, Recipes, testing::Range(0u, 24u), name_of);
INSTANTIATE_TEST_SUITE_P(long_run, Recipes, testing::Range(24u, 4000u), name_of);

} // namespace

} // namespace scalide
