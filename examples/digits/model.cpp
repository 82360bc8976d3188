#include "model.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>

namespace {

float decode(int32_t dtype, const unsigned char *at) {
    if (dtype == SCALIDE_F32) {
        float value;
        std::memcpy(&value, at, sizeof value);
        return value;
    }
    uint16_t code;
    std::memcpy(&code, at, sizeof code);
    if (dtype == SCALIDE_BF16) {
        const uint32_t bits = uint32_t(code) << 16;
        float value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }
    _Float16 value;
    std::memcpy(&value, &code, sizeof value);
    return static_cast<float>(value);
}

void encode(int32_t dtype, float value, unsigned char *at) {
    if (dtype == SCALIDE_F32) {
        std::memcpy(at, &value, sizeof value);
    } else if (dtype == SCALIDE_BF16) {
        uint32_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        const auto code = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        std::memcpy(at, &code, sizeof code);
    } else if (dtype == SCALIDE_F16) {
        const auto narrow = static_cast<_Float16>(value);
        std::memcpy(at, &narrow, sizeof narrow);
    } else {
        throw std::runtime_error(std::string("parameters must be f32, bf16 or f16, got ") + scalide_dtype_name(dtype));
    }
}

// Largest and smallest normal magnitudes of the 8-bit formats, as codes without sign.
struct SmallFormat {
    int32_t dtype;
    unsigned char largest, first_normal;
};
constexpr SmallFormat small_formats[] = {{SCALIDE_F8_E4M3FN, 0x7e, 0x08}, {SCALIDE_F8_E5M2, 0x7b, 0x04}};

size_t elements(const std::vector<int64_t> &shape) {
    size_t count = 1;
    for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
    return count;
}

size_t count_of(const scalide_array &array) {
    size_t count = 1;
    for (int32_t i = 0; i < array.rank; i++) count *= static_cast<size_t>(array.extent[i]);
    return count;
}

// Elements that are not +0 or -0.
size_t count_nonzero(const scalide_array &array) {
    size_t nonzero = 0;
    const size_t size = scalide_dtype_size(array.dtype), count = count_of(array);
    const auto *data = static_cast<const unsigned char *>(array.data);
    for (size_t i = 0; i < count; i++) nonzero += decode(array.dtype, data + i * size) != 0;
    return nonzero;
}

void record(void *user, const scalide_traced *buffer, const scalide_array *array) {
    StepTrace &trace = *static_cast<StepTrace *>(user);
    const std::string tensor = buffer->tensor;
    if (buffer->part == SCALIDE_SCALE) {
        trace.scales[tensor] = *static_cast<const float *>(array->data);
        return;
    }
    // The first form of a tensor is what it is rounded from.
    if (array->dtype == SCALIDE_F32 || array->dtype == SCALIDE_F16) trace.nonzero.try_emplace(tensor, count_nonzero(*array));
    for (const SmallFormat &format : small_formats) {
        if (array->dtype != format.dtype) continue;
        StepTrace::Codes &codes = trace.codes[tensor + "." + scalide_dtype_name(array->dtype)];
        codes.count = count_of(*array);
        const auto *data = static_cast<const unsigned char *>(array->data);
        for (size_t i = 0; i < codes.count; i++) {
            const unsigned char magnitude = data[i] & 0x7f;
            codes.zero += magnitude == 0;
            codes.subnormal += magnitude > 0 && magnitude < format.first_normal;
            codes.largest += magnitude == format.largest;
        }
        // Zeros that were none before have underflowed.
        const auto source = trace.nonzero.find(tensor);
        if (source != trace.nonzero.end()) codes.underflowed = source->second - (codes.count - codes.zero);
    }
}

} // namespace

Context make_context(int threads, int device) {
    char message[1024] = "";
    scalide_options options{};
    options.struct_size = sizeof options;
    options.threads = threads;
    options.device = device;
    options.message = message;
    options.message_size = sizeof message;
    scalide_context *context = nullptr;
    if (scalide_context_create(&options, &context) != SCALIDE_OK) throw std::runtime_error(message);
    return {context, scalide_context_destroy};
}

void check(scalide_status status, const scalide_context *context) {
    if (status != SCALIDE_OK) throw std::runtime_error(scalide_message(context));
}

Memory::Memory(scalide_context *context, size_t bytes) : context_(context), bytes_(bytes), block_(nullptr, Release{context}) {
    void *memory = nullptr;
    check(scalide_allocate(context, bytes, &memory), context);
    block_.reset(memory);
}

void Memory::set(const void *from) { check(scalide_copy_in(context_, at(), from, bytes_), context_); }

void Memory::get(void *to) const { check(scalide_copy_out(context_, to, at(), bytes_), context_); }

Parameter::Parameter(scalide_context *context, const scalide_argument_info &about, const std::vector<int64_t> &extents)
    : info(about), shape(extents), data_(context, elements(extents) * scalide_dtype_size(about.dtype)), scale_(context, sizeof(float)) {}

void Parameter::set(const std::vector<float> &values) {
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    const float scale = info.scaled && largest > 0 ? std::exp2(std::floor(std::log2(largest))) : 1;
    const size_t size = scalide_dtype_size(info.dtype);
    std::vector<unsigned char> codes(values.size() * size);
    for (size_t i = 0; i < values.size(); i++) encode(info.dtype, values[i] / scale, codes.data() + i * size);
    data_.set(codes.data());
    scale_.set(&scale);
}

std::vector<float> Parameter::values() const {
    const size_t size = scalide_dtype_size(info.dtype);
    std::vector<unsigned char> codes(data_.bytes());
    data_.get(codes.data());
    std::vector<float> values(codes.size() / size);
    for (size_t i = 0; i < values.size(); i++) values[i] = decode(info.dtype, codes.data() + i * size) * scale();
    return values;
}

float Parameter::scale() const {
    float scale;
    scale_.get(&scale);
    return scale;
}

scalide_array Parameter::array() const {
    return scalide_dense_array(data_.at(), info.scaled ? static_cast<float *>(scale_.at()) : nullptr, info.dtype, info.rank, shape.data());
}

Trainer::Trainer(scalide_context *context, const scalide_program *program, std::vector<Parameter> &parameters, int batch, int pixels)
    : images(size_t(batch) * pixels), labels(batch), context_(context), parameters_(parameters),
      images_(context, images.size() * sizeof(float)), labels_(context, labels.size() * sizeof(int32_t)), rate_(context, sizeof(float)),
      loss_factor_(context, sizeof(float)), loss_(context, sizeof(float)), binding_(nullptr, scalide_binding_destroy) {
    const int64_t image_shape[] = {batch, pixels}, label_shape[] = {batch};
    std::map<std::string, scalide_array> arrays{{"images", scalide_dense_array(images_.at(), nullptr, SCALIDE_F32, 2, image_shape)},
                                                {"labels", scalide_dense_array(labels_.at(), nullptr, SCALIDE_I32, 1, label_shape)},
                                                {"rate", scalide_dense_array(rate_.at(), nullptr, SCALIDE_F32, 0, nullptr)},
                                                {"loss_factor", scalide_dense_array(loss_factor_.at(), nullptr, SCALIDE_F32, 0, nullptr)},
                                                {"loss", scalide_dense_array(loss_.at(), nullptr, SCALIDE_F32, 0, nullptr)}};
    for (const Parameter &parameter : parameters) arrays[parameter.info.name] = parameter.array();
    std::vector<scalide_array> in_order(scalide_argument_count(program));
    for (size_t i = 0; i < in_order.size(); i++) {
        scalide_argument_info info;
        check(scalide_describe_argument(program, i, &info), context);
        if (info.role != SCALIDE_STATE) in_order[i] = arrays.at(info.name);
    }
    add_policy_state(program, in_order);
    scalide_binding *binding = nullptr;
    check(scalide_bind(context, program, in_order.data(), in_order.size(), &binding), context);
    binding_.reset(binding);
}

// The first call tells the sizes, the second one writes what the state begins with.
void Trainer::add_policy_state(const scalide_program *program, std::vector<scalide_array> &arrays) {
    check(scalide_initial_state(context_, program, arrays.data(), arrays.size()), context_);
    for (size_t i = 0; i < arrays.size(); i++) {
        scalide_argument_info info;
        check(scalide_describe_argument(program, i, &info), context_);
        if (info.role != SCALIDE_STATE) continue;
        const std::vector<int64_t> shape(arrays[i].extent, arrays[i].extent + arrays[i].rank);
        arrays[i].data = policy_state_.emplace_back(context_, elements(shape) * scalide_dtype_size(info.dtype)).at();
    }
    check(scalide_initial_state(context_, program, arrays.data(), arrays.size()), context_);
}

void Trainer::copy_in(float rate, float loss_factor) {
    images_.set(images.data());
    labels_.set(labels.data());
    rate_.set(&rate);
    loss_factor_.set(&loss_factor);
}

float Trainer::step(float rate, float loss_factor) {
    copy_in(rate, loss_factor);
    check(scalide_run(binding_.get()), context_);
    float loss;
    loss_.get(&loss);
    return loss;
}

StepTrace Trainer::traced_step(float rate, float loss_factor) {
    copy_in(rate, loss_factor);
    StepTrace trace;
    const auto count = [](const std::vector<float> &values) { return values.size() - std::count(values.begin(), values.end(), 0.0f); };
    trace.nonzero["images"] = count(images);
    for (const Parameter &parameter : parameters_) trace.nonzero[parameter.info.name] = count(parameter.values());
    check(scalide_run_traced(binding_.get(), record, &trace), context_);
    return trace;
}

std::vector<Parameter> make_parameters(scalide_context *context, const scalide_program *program, const std::vector<int64_t> &widths,
                                       unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Parameter> parameters;
    for (size_t layer = 1; layer < widths.size(); layer++) {
        for (const char kind : {'w', 'b'}) {
            const std::string name = kind + std::to_string(layer);
            const int32_t index = scalide_find_argument(program, name.c_str());
            if (index < 0) throw std::runtime_error("the program has no argument " + name);
            scalide_argument_info info;
            scalide_describe_argument(program, static_cast<size_t>(index), &info);
            const std::vector<int64_t> shape =
                kind == 'w' ? std::vector<int64_t>{widths[layer - 1], widths[layer]} : std::vector<int64_t>{widths[layer]};
            std::vector<float> values(elements(shape));
            std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(widths[layer - 1])));
            if (kind == 'w') {
                for (float &value : values) value = normal(random);
            }
            parameters.emplace_back(context, info, shape);
            parameters.back().set(values);
        }
    }
    return parameters;
}
