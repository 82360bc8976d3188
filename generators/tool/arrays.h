#pragma once
#include "interpret/interpret.h"
#include "scalide/msgpack.h"
#include "scalide/safetensors.h"
#include <map>
#include <memory>
#include <new>

namespace scalide {

/// The alignment that the runtime requires for arrays that a program updates in place.
template<typename T>
struct AlignedAllocator {
    using value_type = T;
    AlignedAllocator() = default;
    template<typename U>
    AlignedAllocator(const AlignedAllocator<U> &) {}
    T *allocate(size_t count) { return static_cast<T *>(::operator new(count * sizeof(T), std::align_val_t(64))); }
    void deallocate(T *memory, size_t) { ::operator delete(memory, std::align_val_t(64)); }
    bool operator==(const AlignedAllocator &) const { return true; }
};

/// A named array of a program, in memory as encoded values, as files store it and compiled programs expect it. A scaled array also has a
/// scale.
struct HostArray {
    std::string name;
    Dtype dtype = Dtype::f32;
    std::vector<int64_t> shape;
    std::vector<unsigned char, AlignedAllocator<unsigned char>> data;
    bool scaled = false;
    float scale = 1;

    /// Returns a view for the runtime. It is valid while this object lives.
    scalide_array view();
};

/// Returns the state of a policy before the first run.
HostArray initial_state(const std::string &name, const Type &type, int64_t initial);

/// Returns the array whose axis i is axis permutation[i] of `array`.
HostArray transposed(const HostArray &array, const std::vector<int64_t> &permutation);

/// Returns the array in a dtype, with or without a scale. An array that has this form stays as it is. Both dtypes must be floats, or
/// neither.
HostArray in_form(HostArray array, Dtype dtype, bool scaled);

/// Returns the size in bytes of a dense array's data.
size_t bytes_of(const scalide_array &array);

/// Copies the array that a view refers to, with its scale.
HostArray copy_of(const std::string &name, const scalide_array &view);

/// Ends of the names of the two tensors of a scaled array: data and scale.
inline constexpr const char *part_suffixes[2][2] = SCALIDE_PART_SUFFIXES;

/// The arrays of a safetensors file, which is mapped, or of a msgpack file of Flax, whose names join the keys with a point.
class ArrayFile {
public:
    /// Throws UserError with the message of the reader.
    explicit ArrayFile(const std::string &file);
    /// Returns the array `name`, or the scaled array that the file stores as two arrays. If there is none, throws UserError with the names
    /// in the file.
    HostArray find(const std::string &name) const;
    /// Returns the names of all tensors, also of those whose dtype find() refuses. A scaled array has two tensors.
    std::vector<std::string> tensors() const;
    /// Returns the state of a policy: from the file, or its initial value if the file does not have it.
    HostArray find_state(const std::string &name, const Type &type, int64_t initial) const;

private:
    std::optional<HostArray> find_if_there(const std::string &name) const;

    std::string path_;
    std::unique_ptr<scalide_safetensors, void (*)(scalide_safetensors *)> content_; ///< one of the two is set
    std::unique_ptr<scalide_msgpack, void (*)(scalide_msgpack *)> leaves_;
    std::map<std::string, const scalide_leaf *> arrays_; ///< of leaves_: arrays and NumPy scalars
};

/// Writes all arrays, or none if it fails. Throws UserError.
void write_arrays(const std::string &file, std::vector<HostArray> &arrays);

/// Decodes the data (without the scale) to f64, or encodes it from f64 with rounding to nearest.
Array to_tensor(const HostArray &array);
HostArray to_array(const std::string &name, const Array &tensor);

} // namespace scalide
