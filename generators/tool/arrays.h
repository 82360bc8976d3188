#pragma once
#include "interpret/interpret.h"
#include "scalide/safetensors.h"
#include <memory>
#include <new>

namespace scalide {

/// The alignment that the runtime wants of arrays that a program overwrites.
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

/// Named arrays of a program, in memory as storage codes: what files hold and compiled programs take. A scaled array has a scale.
struct HostArray {
    std::string name;
    Dtype dtype = Dtype::f32;
    std::vector<int64_t> shape;
    std::vector<unsigned char, AlignedAllocator<unsigned char>> data;
    bool scaled = false;
    float scale = 1;

    /// A view for the runtime; valid while this lives.
    scalide_array view();
};

/// Bytes of a dense array's data.
size_t bytes_of(const scalide_array &array);

/// A copy of what a view shows, with its scale.
HostArray copy_of(const std::string &name, const scalide_array &view);

/// The arrays of a safetensors file.
class ArrayFile {
public:
    /// Throws UserError in the words of the reader.
    explicit ArrayFile(const std::string &file);
    /// The array `name`, or the scaled one that the file has in two parts. Throws UserError with the names that are there.
    HostArray find(const std::string &name) const;
    /// The state of a policy: what the file holds, or what it is before the first run.
    HostArray find_state(const std::string &name, const Type &type, int64_t initial) const;

private:
    std::string path_;
    std::unique_ptr<scalide_safetensors, void (*)(scalide_safetensors *)> content_;
};

/// Writes them, all or nothing. Throws UserError.
void write_arrays(const std::string &file, std::vector<HostArray> &arrays);

/// Decodes to f64 (data alone), and encodes from it with rounding to nearest.
Array to_tensor(const HostArray &array);
HostArray to_array(const std::string &name, const Array &tensor);

} // namespace scalide
