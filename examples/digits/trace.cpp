#include "trace.h"
#include <algorithm>

using namespace scalide::runtime;

namespace {

// Largest and smallest normal magnitudes of the 8-bit formats, as codes without sign.
struct SmallFormat {
    int32_t dtype;
    unsigned char largest, first_normal;
};
constexpr SmallFormat small_formats[] = {{SCALIDE_F8_E4M3FN, 0x7e, 0x08}, {SCALIDE_F8_E5M2, 0x7b, 0x04}};

size_t count_nonzero(const Array &array) {
    const std::vector<float> values = array.get();
    return values.size() - std::count(values.begin(), values.end(), 0.0f);
}

} // namespace

void StepTrace::add(const std::string &tensor, const Array &array) {
    sources.try_emplace(tensor, Form{array.size(), count_nonzero(array)});
    if (array.is_scaled()) scales[tensor] = array.scale();
}

void StepTrace::add(const scalide_traced &buffer, const scalide_array &traced) {
    const std::string tensor = buffer.tensor;
    const Array array(traced.data, traced.dtype, {traced.extent, traced.extent + traced.rank});
    if (buffer.part == SCALIDE_SCALE) {
        scales[tensor] = array.item();
        return;
    }
    // The first form of a tensor is what it is rounded from.
    if (traced.dtype == SCALIDE_F32 || traced.dtype == SCALIDE_F16 || traced.dtype == SCALIDE_BF16)
        sources.try_emplace(tensor, Form{array.size(), count_nonzero(array)});
    for (const SmallFormat &format : small_formats) {
        if (traced.dtype != format.dtype) continue;
        Codes &used = codes[tensor + "." + scalide_dtype_name(traced.dtype)];
        used.count = array.size();
        const auto *data = static_cast<const unsigned char *>(traced.data);
        for (size_t i = 0; i < used.count; i++) {
            const unsigned char magnitude = data[i] & 0x7f;
            used.zero += magnitude == 0;
            used.subnormal += magnitude > 0 && magnitude < format.first_normal;
            used.largest += magnitude == format.largest;
        }
        // Zeros that were none before have underflowed. A value of another size is another array: the compiler uses names of tensors that
        // it has replaced again.
        const auto source = sources.find(tensor);
        const size_t left = used.count - used.zero;
        if (source != sources.end() && source->second.count == used.count)
            used.underflowed = source->second.nonzero > left ? source->second.nonzero - left : 0;
    }
}
