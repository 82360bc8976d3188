#include "bind/views.h"
#include "base/strides.h"
#include "bind/block_tables.h"
#include "bind/collectives.h"
#include "bind/extent.h"
#include <algorithm>

namespace scalide {

namespace {

/// Calls visit(operand, dimensions) for the views of all kernels. `dimensions` are in the order of steps and operands.
template<typename Visit>
void for_each_view(const scalide_program &program, HalideDimension *dimensions, Visit visit) {
    for_each_operand(program, [&](const scalide_operand &operand) {
        if (operand.kind != SCALIDE_OPERAND_BUFFER) return;
        visit(operand, dimensions);
        dimensions += operand.rank;
    });
}

/// Walks over the axes of an array, the innermost first, without axes of extent 1.
class Axes {
public:
    explicit Axes(const scalide_array &array) : array_(array), axis_(array.rank) { next(); }

    bool is_at_end() const { return axis_ < 0; }
    int64_t extent() const { return array_.extent[axis_]; }
    int64_t stride() const { return array_.stride[axis_]; }
    void next() {
        for (--axis_; axis_ >= 0 && array_.extent[axis_] == 1;) --axis_;
    }

private:
    const scalide_array &array_;
    int32_t axis_;
};

/// Writes the strides of a view. An axis of the view is one axis of the array, or several that are one axis in memory. Returns false if
/// the view has other axes.
bool find_strides(const scalide_array &array, int32_t rank, HalideDimension *dimensions) {
    Axes axes(array);
    for (int32_t i = 0; i < rank; ++i) {
        if (dimensions[i].extent == 1) continue;
        if (axes.is_at_end()) return false;
        dimensions[i].stride = static_cast<int32_t>(axes.stride());
        int64_t extent = axes.extent(), next_stride = axes.stride() * axes.extent();
        for (axes.next(); extent < dimensions[i].extent && !axes.is_at_end() && axes.stride() == next_stride; axes.next()) {
            extent *= axes.extent();
            next_stride *= axes.extent();
        }
        if (extent != dimensions[i].extent) return false;
    }
    return axes.is_at_end();
}

/// Kernels compute offsets in 32 bits. They take the innermost axis as contiguous.
bool has_readable_strides(const scalide_array &array) {
    Offsets offsets;
    const Axes innermost(array);
    if (innermost.is_at_end() || innermost.stride() != 1) return false;
    for (Axes axes(array); !axes.is_at_end(); axes.next())
        if (axes.stride() < 1) return false;
    return find_offsets(array, &offsets) && offsets.highest < INT32_MAX;
}

/// True if every kernel that has a view on the argument reads the strides of this array from it. Memory that is updated in place is
/// accessed in whole vectors, so it must be dense. Blocks and collectives take rows and whole arrays as dense memory. The kernels of a
/// device take all strides as constant.
bool reads_strides(const scalide_binding &binding, int32_t argument, const scalide_array &array) {
    const scalide_program &program = *binding.program;
    if (binding.context->device || is_overwritten(program.arguments[argument].role) || !has_readable_strides(array)) return false;
    const int32_t buffer = program.arguments[argument].data_buffer;
    if (is_used_by_blocks(program, buffer) || is_used_by_collectives(program, buffer)) return false;
    bool good = true;
    for_each_view(program, binding.layout->dimensions, [&](const scalide_operand &operand, const HalideDimension *dimensions) {
        if (operand.index != program.arguments[argument].data_buffer || !good) return;
        HalideDimension found[SCALIDE_MAX_RANK];
        good = operand.strided != 0 && operand.rank <= SCALIDE_MAX_RANK;
        if (good) std::copy(dimensions, dimensions + operand.rank, found);
        good = good && find_strides(array, operand.rank, found);
    });
    return good;
}

Access access_of(const scalide_binding &binding, int32_t argument) {
    if (!is_used_by_runs(binding.program->arguments[argument].role) || is_dense(binding.arrays[argument])) return Access::dense;
    return reads_strides(binding, argument, binding.arrays[argument]) ? Access::strided : Access::copied;
}

uint64_t bytes_of_data(const scalide_binding &binding, int32_t argument) {
    return bytes_of(*binding.program, *binding.layout, binding.program->arguments[argument].data_buffer);
}

} // namespace

scalide_status choose_access(scalide_binding &binding, uint64_t *bytes) {
    const scalide_program &program = *binding.program;
    bool has_strided = false;
    *bytes = 0;
    for (int32_t i = 0; i < program.argument_count; ++i) {
        binding.data[i] = {access_of(binding, i), *bytes};
        if (binding.data[i].access == Access::copied) *bytes = round_up(*bytes + bytes_of_data(binding, i), memory_alignment);
        has_strided |= binding.data[i].access == Access::strided;
    }
    binding.has_copies = *bytes > 0;
    if (!has_strided) return SCALIDE_OK;
    const uint64_t count = count_dimensions(program);
    binding.strided = static_cast<HalideDimension *>(allocate(binding.context->allocator, sizeof(HalideDimension) * count));
    if (!binding.strided) {
        start_message(binding.context) << program.name << ": out of memory: cannot allocate the table of strides.";
        return SCALIDE_OUT_OF_MEMORY;
    }
    std::copy(binding.layout->dimensions, binding.layout->dimensions + count, binding.strided);
    return SCALIDE_OK;
}

void write_strides(scalide_binding &binding) {
    const scalide_program &program = *binding.program;
    for_each_view(program, binding.strided, [&](const scalide_operand &operand, HalideDimension *dimensions) {
        const scalide_buffer &buffer = program.buffers[operand.index];
        if (buffer.storage == SCALIDE_STORAGE_DATA && binding.data[buffer.index].access == Access::strided)
            find_strides(binding.arrays[buffer.index], operand.rank, dimensions);
    });
}

bool check_access(const scalide_binding &binding, const Call &call, int32_t argument) {
    const scalide_array &array = call.arrays[argument];
    const Access access = binding.data[argument].access;
    if (access == Access::copied) return true;
    if (access == Access::dense && is_dense(array)) return true;
    if (access == Access::strided && reads_strides(binding, argument, array)) return true;
    complain(call, argument)
        << (access == Access::dense
                ? "the strides must be dense and row-major, because the array of scalide_bind was dense, got other strides."
                : "the kernels must be able to read the strides, as for the array of scalide_bind, got other strides.")
        << " Bind this array with scalide_bind.";
    return false;
}

uint64_t copied_bytes(const scalide_binding &binding, int32_t argument) {
    if (binding.data[argument].access != Access::copied) return 0;
    return bytes_of_data(binding, argument) * (is_overwritten(binding.program->arguments[argument].role) ? 2 : 1);
}

scalide_array copy_of(const scalide_binding &binding, int32_t argument) {
    const uint64_t offset = binding.copies_offset + binding.data[argument].offset;
    char *memory = binding.arena ? static_cast<char *>(binding.arena) + offset : nullptr;
    return describe(binding.program->buffers[binding.program->arguments[argument].data_buffer], binding.symbols, memory);
}

} // namespace scalide
