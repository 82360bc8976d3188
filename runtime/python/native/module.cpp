// The extension module scalide._runtime. Users see it through scalide/library.py.
#include "arrays.h"
#include "checkpoints.h"
#include "scalide/metrics.h"
#include "scalide/safetensors.h"
#include "xla_handler.h"
#include <cstring>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <utility>

namespace nb = nanobind;
using namespace nb::literals;
using namespace scalide::python;

namespace {

using ProgramHandle = std::shared_ptr<LoadedProgram>;

/// The arrays of one call. A scaled array is a tuple (data, scale).
struct Frame {
    explicit Frame(const LoadedProgram &program)
        : program(program), arrays(program.arguments().size()), scales(arrays.size()), owned(arrays.size()) {
        for (size_t i = 0; i < arrays.size(); ++i) memory.emplace_back(nullptr, std::free);
    }

    Wanted wanted(size_t i) const { return {std::string(program.program().name) + "." + info(i).name, info(i).dtype}; }
    const scalide_argument_info &info(size_t i) const { return program.arguments()[i]; }

    /// With `donated`, the run updates the array of an inout if its memory fits.
    void take_input(size_t i, const nb::handle &leaf, bool donated = false) {
        const bool scaled = info(i).scaled;
        const nb::object data = scaled ? nb::object(leaf[0]) : nb::borrow(leaf);
        arrays[i] = view_input(data, wanted(i), keep);
        if (scaled) {
            scales[i] = nb::cast<float>(leaf[1]);
            arrays[i].scale = &scales[i];
        }
        if ((info(i).role != SCALIDE_INOUT && info(i).role != SCALIDE_STATE) || arrays[i].rank > SCALIDE_MAX_RANK) return;
        if (donated && is_updatable(data, arrays[i])) {
            owned[i] = data;
            return;
        }
        // The arrays of the caller must not change.
        memory[i] = allocate_data(arrays[i]);
        std::memcpy(memory[i].get(), arrays[i].data, data_bytes(arrays[i]));
        arrays[i].data = memory[i].get();
    }

    void take_written(size_t i, const nb::handle &leaf) {
        const bool scaled = info(i).scaled;
        arrays[i] = view_output(scaled ? nb::object(leaf[0]) : nb::borrow(leaf), wanted(i));
        if (scaled) arrays[i].scale = view_scale(nb::object(leaf[1]), wanted(i));
    }

    nb::object result(size_t i) {
        const nb::object data = owned[i] ? owned[i] : to_numpy(arrays[i], std::move(memory[i]));
        return info(i).scaled ? nb::make_tuple(data, scalar_to_numpy(scales[i])) : data;
    }

    const LoadedProgram &program;
    std::vector<scalide_array> arrays;
    std::vector<float> scales;
    std::vector<Memory> memory;
    std::vector<nb::object> owned; ///< arrays of the caller that the run updates; otherwise empty
    std::vector<nb::object> keep;
};

void check_count(const LoadedProgram &program, size_t expected, size_t got) {
    if (expected == got) return;
    throw nb::type_error((std::string(program.program().name) + ": the number of arrays must be " + std::to_string(expected) + ", got " +
                          std::to_string(got) + ".")
                             .c_str());
}

/// Reads the inputs and inouts, in the order of the arguments, without the constants if they are prepared.
void take_given(Frame &frame, const nb::list &leaves, const Constants *constants, bool donated = false) {
    size_t given = 0;
    for (size_t i = 0; i < frame.arrays.size(); ++i) {
        if (constants && frame.info(i).role == SCALIDE_CONSTANT) continue;
        if (frame.info(i).role == SCALIDE_OUTPUT) {
            if (frame.info(i).scaled) frame.arrays[i].scale = &frame.scales[i];
        } else if (given++ < leaves.size()) {
            frame.take_input(i, leaves[given - 1], donated);
        }
    }
    check_count(frame.program, given, leaves.size());
}

/// Allocates memory for the outputs.
LoadedProgram::Allocate allocate_in(Frame &frame) {
    return [&frame](size_t i, scalide_array &array) {
        frame.memory[i] = allocate_data(array);
        array.data = frame.memory[i].get();
    };
}

/// Warns about matmuls that a library has refused. A filter of the user may turn a warning into an exception.
void warn(LoadedProgram &program) {
    for (const std::string &notice : program.take_notices())
        if (PyErr_WarnEx(PyExc_RuntimeWarning, notice.c_str(), 1) != 0) throw nb::python_error();
}

/// Runs Python's handlers of signals. It is not 0 if one of them has raised, which KeyboardInterrupt is by default.
int check_signals(void *) {
    const nb::gil_scoped_acquire acquired;
    return PyErr_CheckSignals();
}

/// Returns inouts and outputs in the order of the arguments.
nb::list results_of(Frame &frame) {
    nb::list results;
    for (size_t i = 0; i < frame.arrays.size(); ++i) {
        if (is_written(frame.info(i))) results.append(frame.result(i));
    }
    return results;
}

/// Returns name, step, kernel and loops of the first result that is not finite, or None.
nb::object to_tuple(const NonFinite &first) {
    return first.buffer ? nb::make_tuple(first.buffer, first.step, first.kernel, first.loops) : nb::object(nb::none());
}

/// Takes inputs and inouts, and returns inouts and outputs, both in the order of the arguments. With `donated`, the arrays of inouts that
/// fit are results, too. With `apart`, the run collects no statistics, and does not count as a call.
nb::list call(LoadedProgram &program, const nb::list &leaves, const Constants *constants, bool donated, bool apart) {
    Frame frame(program);
    take_given(frame, leaves, constants, donated);
    {
        nb::gil_scoped_release released;
        if (apart) {
            program.run_apart(frame.arrays, constants, allocate_in(frame), check_signals);
        } else {
            program.run(frame.arrays, constants, allocate_in(frame), check_signals);
        }
    }
    warn(program);
    return results_of(frame);
}

/// Does the same. Also returns the first result that is not finite.
nb::tuple call_checked(LoadedProgram &program, const nb::list &leaves, const Constants *constants, bool donated) {
    Frame frame(program);
    take_given(frame, leaves, constants, donated);
    NonFinite first;
    {
        nb::gil_scoped_release released;
        first = program.run_checked(frame.arrays, constants, allocate_in(frame), check_signals);
    }
    warn(program);
    return nb::make_tuple(results_of(frame), to_tuple(first));
}

/// Copies the arrays of a run that a function of Python asks for by name and tensor.
class TracedArrays {
public:
    explicit TracedArrays(const nb::callable &wants) : wants_(wants) {}

    static void take(void *user, const scalide_traced *buffer, const scalide_array *array) {
        static_cast<TracedArrays *>(user)->take(*buffer, *array);
    }

    /// Returns rows of name, tensor, part, loops and array. Throws what the function of Python has raised.
    nb::list rows() const {
        if (failure_) std::rethrow_exception(failure_);
        return rows_;
    }

private:
    void take(const scalide_traced &buffer, const scalide_array &array) {
        if (failure_) return; // an exception cannot pass the runtime, which is written in C
        const nb::gil_scoped_acquire acquired;
        try {
            if (!nb::cast<bool>(wants_(buffer.name, buffer.tensor))) return;
            scalide_array copy = array;
            Memory memory = allocate_data(array);
            std::memcpy(memory.get(), array.data, data_bytes(array));
            copy.data = memory.get();
            rows_.append(nb::make_tuple(buffer.name, buffer.tensor, parts[buffer.part], buffer.loops ? buffer.loops : "",
                                        scalide_dtype_name(array.dtype), to_numpy(copy, std::move(memory))));
        } catch (...) {
            failure_ = std::current_exception();
        }
    }

    static constexpr const char *parts[] = {"whole", "data", "scale"};
    nb::callable wants_;
    nb::list rows_;
    std::exception_ptr failure_;
};

/// Runs as call() does. Also returns the arrays for which `wants(name, tensor)` is true.
nb::tuple call_traced(LoadedProgram &program, const nb::list &leaves, const Constants *constants, const nb::callable &wants) {
    Frame frame(program);
    take_given(frame, leaves, constants);
    TracedArrays traced(wants);
    {
        nb::gil_scoped_release released;
        program.run_traced(frame.arrays, constants, allocate_in(frame), check_signals, TracedArrays::take, &traced);
    }
    warn(program);
    return nb::make_tuple(results_of(frame), traced.rows());
}

/// Takes the constants in the order of the arguments.
std::shared_ptr<Constants> prepare(const LoadedProgram &program, const nb::list &leaves) {
    Frame frame(program);
    size_t given = 0;
    for (size_t i = 0; i < frame.arrays.size(); ++i) {
        if (frame.info(i).role == SCALIDE_CONSTANT && given++ < leaves.size()) frame.take_input(i, leaves[given - 1]);
    }
    check_count(program, given, leaves.size());
    nb::gil_scoped_release released;
    return program.prepare(frame.arrays);
}

/// Takes all arguments, without the constants if they are prepared. Writes inouts and outputs in place. With `checked`, returns the first
/// result that is not finite.
nb::object run_in_place(LoadedProgram &program, const nb::list &leaves, const Constants *constants, bool checked) {
    Frame frame(program);
    size_t given = 0;
    for (size_t i = 0; i < frame.arrays.size(); ++i) {
        if ((constants && frame.info(i).role == SCALIDE_CONSTANT) || given++ >= leaves.size()) continue;
        if (is_written(frame.info(i))) {
            frame.take_written(i, leaves[given - 1]);
        } else {
            frame.take_input(i, leaves[given - 1]);
        }
    }
    check_count(program, given, leaves.size());
    NonFinite first;
    {
        nb::gil_scoped_release released;
        if (checked) {
            first = program.run_checked(frame.arrays, constants, {}, check_signals);
        } else {
            program.run(frame.arrays, constants, {}, check_signals);
        }
    }
    warn(program);
    return to_tuple(first);
}

/// Returns the shapes of inouts and outputs for the shapes of inputs and inouts, both in the order of the arguments.
nb::list result_shapes(const LoadedProgram &program, const std::vector<std::vector<int64_t>> &shapes, const Constants *constants) {
    std::vector<scalide_array> arrays;
    size_t given = 0;
    for (const scalide_argument_info &info : program.arguments()) {
        if (constants && info.role == SCALIDE_CONSTANT) {
            arrays.push_back(constants->shapes[arrays.size()]);
            continue;
        }
        const bool shaped = info.role != SCALIDE_OUTPUT;
        const std::vector<int64_t> shape = shaped && given < shapes.size() ? shapes[given] : std::vector<int64_t>();
        given += shaped;
        if (shape.size() > SCALIDE_MAX_RANK) throw nb::value_error((std::string(info.name) + ": rank must be at most 8.").c_str());
        arrays.push_back(scalide_dense_array(nullptr, nullptr, info.dtype, static_cast<int32_t>(shape.size()), shape.data()));
    }
    check_count(program, given, shapes.size());
    program.shape_outputs(arrays);
    nb::list results;
    for (size_t i = 0; i < arrays.size(); ++i) {
        if (!is_written(program.arguments()[i])) continue;
        nb::list shape;
        for (int32_t axis = 0; axis < arrays[i].rank; ++axis) shape.append(arrays[i].extent[axis]);
        results.append(nb::tuple(shape));
    }
    return results;
}

nb::list describe_arguments(const LoadedProgram &program) {
    static constexpr const char *roles[] = {"input", "output", "inout", "state", "constant"};
    nb::list rows;
    for (const scalide_argument_info &info : program.arguments()) {
        rows.append(nb::make_tuple(info.name, scalide_dtype_name(info.dtype), info.rank, roles[info.role], info.scaled != 0));
    }
    return rows;
}

/// Returns name, dtype, shape and initial value of the policy's state.
nb::list describe_state(const LoadedProgram &program) {
    std::vector<scalide_array> arrays(program.arguments().size());
    program.describe_state(arrays);
    nb::list rows;
    for (size_t i = 0; i < arrays.size(); ++i) {
        const scalide_argument_info &info = program.arguments()[i];
        if (info.role != SCALIDE_STATE) continue;
        nb::list shape;
        for (int32_t axis = 0; axis < arrays[i].rank; ++axis) shape.append(arrays[i].extent[axis]);
        rows.append(nb::make_tuple(info.name, scalide_dtype_name(info.dtype), nb::tuple(shape), info.initial));
    }
    return rows;
}

/// Returns the tensors with statistics: tensor, use, operator, scope, location, policy, direction, dtype, every, first_exponent, octaves.
nb::list describe_statistics(const LoadedProgram &program) {
    nb::list rows;
    for (size_t i = 0; i < scalide_statistics_count(&program.program()); ++i) {
        scalide_statistic_info info;
        scalide_describe_statistic(&program.program(), i, &info);
        rows.append(nb::make_tuple(info.tensor, info.use, info.op, info.scope, info.location ? info.location : "",
                                   info.policy ? info.policy : "", info.direction, scalide_dtype_name(info.dtype), info.every,
                                   info.first_exponent, info.octaves));
    }
    return rows;
}

/// Returns the newest statistics: step, elements, amax, scale, rms, zeros, saturated, subnormal, non_finite, first, histogram.
nb::list read_statistics(const LoadedProgram &program) {
    nb::list rows;
    for (const scalide_statistic &row : program.statistics()) {
        const std::vector<int32_t> histogram(std::begin(row.histogram), std::end(row.histogram));
        rows.append(nb::make_tuple(row.step, row.elements, row.amax, row.scale, row.rms, row.zeros, row.saturated, row.subnormal,
                                   row.non_finite, row.first, histogram));
    }
    return rows;
}

/// Returns the suffixes of data and scale in files, and those that replace them.
nb::tuple part_suffixes() {
    const char *rows[2][2] = SCALIDE_PART_SUFFIXES;
    return nb::make_tuple(nb::make_tuple(rows[0][0], rows[0][1]), nb::make_tuple(rows[1][0], rows[1][1]));
}

/// Files for metrics, until they are closed.
class Metrics {
public:
    Metrics(const std::string &folder, bool tensorboard, uint64_t queue_bytes, bool statistics) {
        const scalide_metrics_options options = {sizeof(options), tensorboard, queue_bytes, statistics};
        check([&](char *message, size_t size) { return scalide_metrics_open(folder.c_str(), &options, &handle_, message, size); });
    }
    Metrics(const Metrics &) = delete;
    Metrics &operator=(const Metrics &) = delete;
    ~Metrics() { scalide_metrics_close(handle_, nullptr, 0); }

    void write(int64_t step, const std::vector<std::pair<std::string, double>> &values) {
        std::vector<scalide_metric> metrics;
        for (const auto &[name, value] : values) {
            if (std::strlen(name.c_str()) != name.size()) throw nb::value_error("a name must not contain a zero byte. Rename the metric.");
            metrics.push_back({name.c_str(), value});
        }
        check([&](char *message, size_t size) {
            return scalide_metrics_write(opened(), step, metrics.data(), metrics.size(), message, size);
        });
    }
    void write_statistics(int64_t step, const LoadedProgram &program) {
        const std::vector<scalide_statistic> rows = program.statistics();
        check([&](char *message, size_t size) {
            return scalide_metrics_write_statistics(opened(), step, &program.program(), rows.data(), rows.size(), message, size);
        });
    }
    void flush() {
        scalide_metrics *handle = opened();
        check([&](char *message, size_t size) {
            const nb::gil_scoped_release released;
            return scalide_metrics_flush(handle, message, size);
        });
    }
    void close() {
        scalide_metrics *handle = std::exchange(handle_, nullptr);
        check([&](char *message, size_t size) {
            const nb::gil_scoped_release released;
            return scalide_metrics_close(handle, message, size);
        });
    }
    uint64_t dropped() const { return scalide_metrics_dropped(opened()); }

private:
    scalide_metrics *opened() const {
        if (!handle_) throw nb::value_error("these metrics are closed. Open them again.");
        return handle_;
    }
    template<typename Call>
    static void check(const Call &call) {
        char message[1024] = "";
        const scalide_status status = call(message, sizeof(message));
        if (status != SCALIDE_OK) throw Failure(status, message);
    }

    scalide_metrics *handle_ = nullptr;
};

void define_program(nb::module_ &module) {
    nb::class_<LoadedProgram>(module, "Program")
        .def(nb::init<const std::string &, const std::string &, int>(), "path"_a, "name"_a, "threads"_a)
        .def_prop_ro("name", [](const LoadedProgram &p) { return p.program().name; })
        .def_prop_ro("target", [](const LoadedProgram &p) { return p.program().target; })
        .def_prop_ro("numerics", [](const LoadedProgram &p) { return p.program().numerics; })
        .def_prop_ro("hash", [](const LoadedProgram &p) { return p.program().hash; })
        .def_prop_ro("arguments", describe_arguments)
        .def_prop_ro("state", describe_state)
        .def_prop_ro("described_statistics", describe_statistics)
        .def_prop_ro("statistics", read_statistics)
        .def_prop_ro("statistics_step", &LoadedProgram::statistics_step)
        .def("prepare", prepare, "leaves"_a)
        .def("result_shapes", result_shapes, "shapes"_a, "constants"_a.none() = nb::none())
        .def("call", call, "leaves"_a, "constants"_a.none() = nb::none(), "donated"_a = false, "apart"_a = false)
        .def("call_checked", call_checked, "leaves"_a, "constants"_a.none() = nb::none(), "donated"_a = false)
        .def("call_traced", call_traced, "leaves"_a, "constants"_a.none(), "wants"_a)
        .def("run_in_place", run_in_place, "leaves"_a, "constants"_a.none() = nb::none(), "checked"_a = false);
}

void define_metrics(nb::module_ &module) {
    nb::class_<Metrics>(module, "Metrics")
        .def(nb::init<const std::string &, bool, uint64_t, bool>(), "folder"_a, "tensorboard"_a, "queue_bytes"_a, "statistics"_a)
        .def("write", &Metrics::write, "step"_a, "values"_a)
        .def("write_statistics", &Metrics::write_statistics, "step"_a, "program"_a)
        .def("flush", &Metrics::flush)
        .def("close", &Metrics::close)
        .def_prop_ro("dropped", &Metrics::dropped);
}

std::pair<int32_t, int32_t> join_by(const std::string &group, bool mpi) {
    const Join over_mpi = [](scalide_context *context, const char *name) { return scalide_join_mpi(context, name, nullptr); };
    const Rank joined = join_group(group, mpi ? over_mpi : scalide_join_alone);
    return {joined.rank, joined.ranks};
}

PyObject *exception_of(scalide_status status) {
    switch (status) {
    case SCALIDE_INVALID_ARGUMENT: return PyExc_ValueError;
    case SCALIDE_OUT_OF_MEMORY: return PyExc_MemoryError;
    case SCALIDE_FILE_ERROR: return PyExc_OSError;
    default: return PyExc_RuntimeError;
    }
}

} // namespace

NB_MODULE(_runtime, module) {
    nb::set_leak_warnings(false); // a program that a jitted function uses lives as long as the process
    nb::register_exception_translator([](const std::exception_ptr &pointer, void *) {
        try {
            std::rethrow_exception(pointer);
        } catch (const Failure &failure) {
            if (failure.status == SCALIDE_INTERRUPTED && PyErr_Occurred()) return; // the exception of check_signals()
            PyErr_SetString(exception_of(failure.status), failure.what());
        }
    });
    module.attr("version") = SCALIDE_VERSION;
    module.attr("part_suffixes") = part_suffixes();
    module.def("set_dtypes", set_dtypes);
    module.def("join", join_by, "group"_a, "mpi"_a, nb::call_guard<nb::gil_scoped_release>());
    module.attr("xla_handler") = xla_handler();
    add_checkpoints(module);
    nb::class_<Constants>(module, "Constants").def_prop_ro("bytes", [](const Constants &constants) {
        return scalide_constants_bytes(constants.handle);
    });
    define_program(module);
    define_metrics(module);
    module.def(
        "register_for_xla",
        [](const ProgramHandle &program, const std::shared_ptr<Constants> &constants, int64_t key) {
            register_for_xla(program, constants, key);
        },
        "program"_a, "constants"_a.none(), "key"_a);
}
