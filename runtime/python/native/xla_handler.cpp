#include "xla_handler.h"
#include <cstring>
#include <map>

#ifdef SCALIDE_XLA_FFI
#include "xla/ffi/api/ffi.h"
#endif

namespace scalide::python {

namespace {

std::mutex registry_mutex;

struct Entry {
    std::shared_ptr<LoadedProgram> program;
    bool is_prepared;
    std::weak_ptr<Constants> constants; ///< the Python object owns them: old weights must not stay in memory
};

// Never destroyed, because threads of XLA may live longer than static objects.
std::map<int64_t, Entry> &registry() {
    static auto *entries = new std::map<int64_t, Entry>;
    return *entries;
}

} // namespace

void register_for_xla(const std::shared_ptr<LoadedProgram> &program, const std::shared_ptr<Constants> &constants, int64_t key) {
    const std::lock_guard lock(registry_mutex);
    registry().emplace(key, Entry{program, constants != nullptr, constants});
}

#ifdef SCALIDE_XLA_FFI

namespace {

namespace ffi = xla::ffi;

struct Operation {
    std::shared_ptr<LoadedProgram> program;
    std::shared_ptr<Constants> constants; ///< NULL: they are operands
};

/// Returns an operation without a program if nothing is registered or the prepared constants are gone.
Operation find_operation(int64_t key) {
    const std::lock_guard lock(registry_mutex);
    const auto found = registry().find(key);
    if (found == registry().end()) return {};
    Operation operation = {found->second.program, found->second.constants.lock()};
    return found->second.is_prepared && !operation.constants ? Operation() : operation;
}

#define SCALIDE_NUMBER(id, name, text, number, kind, bits, safetensors, xla, ...) xla,
constexpr int xla_types[] = {SCALIDE_DTYPES(SCALIDE_NUMBER)};
#undef SCALIDE_NUMBER

constexpr bool is(int32_t dtype, ffi::DataType type) { return xla_types[dtype] == static_cast<int>(type); }
static_assert(is(SCALIDE_F32, ffi::DataType::F32) && is(SCALIDE_F16, ffi::DataType::F16) && is(SCALIDE_BF16, ffi::DataType::BF16) &&
                  is(SCALIDE_F8_E4M3FN, ffi::DataType::F8E4M3FN) && is(SCALIDE_F8_E5M2, ffi::DataType::F8E5M2) &&
                  is(SCALIDE_F8_E4M3FNUZ, ffi::DataType::F8E4M3FNUZ) && is(SCALIDE_F8_E5M2FNUZ, ffi::DataType::F8E5M2FNUZ) &&
                  is(SCALIDE_F8_E4M3B11FNUZ, ffi::DataType::F8E4M3B11FNUZ) && is(SCALIDE_I32, ffi::DataType::S32) &&
                  is(SCALIDE_BOOL, ffi::DataType::PRED) && is(SCALIDE_I8, ffi::DataType::S8) && is(SCALIDE_U8, ffi::DataType::U8) &&
                  is(SCALIDE_I16, ffi::DataType::S16) && is(SCALIDE_U16, ffi::DataType::U16) && is(SCALIDE_U32, ffi::DataType::U32) &&
                  is(SCALIDE_I64, ffi::DataType::S64),
              "the numbers of XLA_FFI_DataType");

int32_t dtype_of(ffi::DataType type) {
#define SCALIDE_CASE(id, name, text, number, kind, bits, safetensors, xla, ...)                                                            \
    case xla: return SCALIDE_##id;
    switch (static_cast<int>(type)) {
        SCALIDE_DTYPES(SCALIDE_CASE)
    default: return SCALIDE_F64; // never an argument: scalide_bind reports an error
    }
#undef SCALIDE_CASE
}

scalide_array describe(const ffi::AnyBuffer &buffer) {
    const auto extents = buffer.dimensions();
    return scalide_dense_array(buffer.untyped_data(), nullptr, dtype_of(buffer.element_type()), static_cast<int32_t>(extents.size()),
                               extents.begin());
}

/// The operands and results of XLA, in order.
class Buffers {
public:
    Buffers(const ffi::RemainingArgs &operands, const ffi::RemainingRets &results) : operands_(operands), results_(results) {}

    scalide_array operand() { return describe(operands_.get<ffi::AnyBuffer>(operand_++).value()); }
    scalide_array result() { return describe(**results_.get<ffi::AnyBuffer>(result_++)); }

private:
    const ffi::RemainingArgs &operands_;
    const ffi::RemainingRets &results_;
    size_t operand_ = 0, result_ = 0;
};

void copy_data(const void *from, void *to, const scalide_array &array) {
    if (from != to) std::memcpy(to, from, data_bytes(array));
}

/// An inout without the necessary alignment: XLA guarantees only 16 bytes. The run updates an aligned copy.
struct Detour {
    Detour(scalide_array &array) : result(array), memory(allocate_data(array)) { array.data = memory.get(); }
    void finish() const { std::memcpy(result.data, memory.get(), data_bytes(result)); }

    scalide_array result;
    Memory memory;
};

bool needs_detour(const scalide_array &array) { return array.rank > 0 && reinterpret_cast<uintptr_t>(array.data) % alignment != 0; }

// Operands are inputs, inouts and constants that are not prepared; results are inouts and outputs. A scaled argument has its data, then its
// scale.
void run(LoadedProgram &program, const Constants *constants, Buffers buffers) {
    std::vector<scalide_array> arrays;
    std::vector<Detour> detours;
    for (const scalide_argument_info &info : program.arguments()) {
        if (constants && info.role == SCALIDE_CONSTANT) {
            arrays.emplace_back();
            continue;
        }
        const int parts = info.scaled ? 2 : 1;
        scalide_array given[2] = {}, written[2] = {};
        for (int part = 0; part < parts && info.role != SCALIDE_OUTPUT; ++part) given[part] = buffers.operand();
        for (int part = 0; part < parts && is_written(info); ++part) written[part] = buffers.result();
        if ((info.role == SCALIDE_INOUT || info.role == SCALIDE_STATE)) {
            if (needs_detour(written[0])) detours.emplace_back(written[0]);
            for (int part = 0; part < parts; ++part) copy_data(given[part].data, written[part].data, given[part]);
        }
        scalide_array *used = is_written(info) ? written : given;
        if (info.scaled) used[0].scale = static_cast<float *>(used[1].data);
        arrays.push_back(used[0]);
    }
    program.run(arrays, constants, {});
    for (const Detour &detour : detours) detour.finish();
}

/// XLA calls this from any thread, so an exception of a warning filter has no caller.
void warn(LoadedProgram &program) {
    const std::vector<std::string> notices = program.take_notices();
    if (notices.empty()) return;
    const nanobind::gil_scoped_acquire acquired;
    for (const std::string &notice : notices)
        if (PyErr_WarnEx(PyExc_RuntimeWarning, notice.c_str(), 1) != 0) PyErr_WriteUnraisable(nullptr);
}

struct Counts {
    size_t operands = 0, results = 0;
};

Counts count_buffers(const Operation &operation) {
    Counts counts;
    for (const scalide_argument_info &info : operation.program->arguments()) {
        const size_t parts = info.scaled ? 2 : 1;
        if (info.role != SCALIDE_OUTPUT && !(info.role == SCALIDE_CONSTANT && operation.constants)) counts.operands += parts;
        if (is_written(info)) counts.results += parts;
    }
    return counts;
}

ffi::Error handle(int64_t key, ffi::RemainingArgs operands, ffi::RemainingRets results) {
    const Operation operation = find_operation(key);
    if (!operation.program) {
        return ffi::Error(ffi::ErrorCode::kFailedPrecondition, "scalide: the library of this compiled function is not loaded in this "
                                                               "process, or its prepared constants are gone. Keep the library that "
                                                               "prepare returned, or trace the function again.");
    }
    const Counts counts = count_buffers(operation);
    if (operands.size() != counts.operands || results.size() != counts.results) {
        return ffi::Error(ffi::ErrorCode::kInvalidArgument, "scalide: the number of arrays is not the number of arguments of the program");
    }
    try {
        run(*operation.program, operation.constants.get(), {operands, results});
        warn(*operation.program);
    } catch (const std::exception &failure) {
        return ffi::Error(ffi::ErrorCode::kInvalidArgument, failure.what());
    }
    return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER(handler, handle, ffi::Ffi::Bind().Attr<int64_t>("program").RemainingArgs().RemainingRets());

} // namespace

nanobind::object xla_handler() { return nanobind::capsule(reinterpret_cast<void *>(handler), "xla._CUSTOM_CALL_TARGET"); }

#else

nanobind::object xla_handler() { return nanobind::none(); }

#endif

} // namespace scalide::python
