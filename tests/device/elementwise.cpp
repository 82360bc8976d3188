#include "elementwise.h"
#include <cstring>
#include <random>

namespace scalide::test {

namespace {

constexpr int64_t columns = 33;
constexpr size_t w_index = 4, argument_count = 8;

std::vector<unsigned char> draw(int32_t dtype, size_t count, std::mt19937 &random) {
    std::vector<unsigned char> bytes(count * scalide_dtype_size(dtype));
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < count; i++) {
        const float value = normal(random);
        const auto number = static_cast<int32_t>(100 * value);
        uint32_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        const auto upper = static_cast<uint16_t>(bits >> 16);
        const void *content = &value;
        if (dtype == SCALIDE_BF16) content = &upper;
        if (dtype == SCALIDE_I32) content = &number;
        std::memcpy(bytes.data() + i * scalide_dtype_size(dtype), content, scalide_dtype_size(dtype));
    }
    return bytes;
}

} // namespace

Context::Context(int32_t device, void *stream, int32_t index) {
    char words[1024] = "";
    scalide_options options = {};
    options.struct_size = sizeof(options);
    options.threads = 2;
    options.device = device;
    options.device_index = index;
    options.stream = stream;
    options.message = words;
    options.message_size = sizeof(words);
    status = scalide_context_create(&options, &handle);
    message = words;
}

Elementwise::Elementwise(scalide_context *context, int64_t b, unsigned seed) : context_(context) {
    std::mt19937 random(seed);
    const struct {
        int32_t dtype, rank;
    } rows[argument_count] = {{SCALIDE_F32, 2}, {SCALIDE_BF16, 2}, {SCALIDE_I32, 2},  {SCALIDE_F32, 0},
                              {SCALIDE_F32, 2}, {SCALIDE_F16, 2},  {SCALIDE_BOOL, 2}, {SCALIDE_I32, 2}};
    const int64_t shape[] = {b, columns};
    for (const auto &row : rows) {
        const auto count = static_cast<size_t>(row.rank == 0 ? 1 : b * columns);
        const std::vector<unsigned char> content = draw(row.dtype, count, random);
        arrays.push_back(scalide_dense_array(place(content.data(), content.size()), nullptr, row.dtype, row.rank, shape));
    }
    const float scale = 0.5f, t = 0;
    arrays[w_index].scale = static_cast<float *>(place(&scale, sizeof scale));
    arrays.push_back(scalide_dense_array(place(&t, sizeof t), nullptr, SCALIDE_F32, 0, nullptr));
}

Elementwise::~Elementwise() {
    for (void *memory : taken_) scalide_release(context_, memory);
}

void *Elementwise::place(const void *content, size_t bytes) {
    void *memory = nullptr;
    if (status == SCALIDE_OK) status = scalide_allocate(context_, bytes, &memory);
    if (memory) taken_.push_back(memory);
    if (status == SCALIDE_OK) status = scalide_copy_in(context_, memory, content, bytes);
    return memory;
}

size_t Elementwise::bytes(size_t argument) const {
    const scalide_array &array = arrays[argument];
    return scalide_dtype_size(array.dtype) * static_cast<size_t>(array.rank == 0 ? 1 : array.extent[0] * array.extent[1]);
}

scalide_status Elementwise::bind(const scalide_program *program, scalide_binding **binding) const {
    return scalide_bind(context_, program, arrays.data(), arrays.size(), binding);
}

std::vector<unsigned char> Elementwise::results() {
    std::vector<unsigned char> all;
    const auto append = [&](const void *memory, size_t bytes) {
        all.resize(all.size() + bytes);
        if (status == SCALIDE_OK) status = scalide_copy_out(context_, all.data() + all.size() - bytes, memory, bytes);
    };
    for (size_t i = w_index; i < arrays.size(); i++) append(arrays[i].data, bytes(i));
    append(arrays[w_index].scale, sizeof(float));
    return all;
}

std::vector<unsigned char> run(int32_t device, const scalide_program *program, int64_t b, int runs) {
    Context context(device);
    EXPECT_EQ(context.status, SCALIDE_OK) << context.message;
    Elementwise arrays(context.handle, b);
    scalide_binding *binding = nullptr;
    EXPECT_EQ(arrays.bind(program, &binding), SCALIDE_OK) << scalide_message(context.handle);
    for (int i = 0; i < runs; i++) EXPECT_EQ(scalide_run(binding), SCALIDE_OK) << scalide_message(context.handle);
    std::vector<unsigned char> results = arrays.results();
    EXPECT_EQ(arrays.status, SCALIDE_OK) << scalide_message(context.handle);
    scalide_binding_destroy(binding);
    return results;
}

} // namespace scalide::test
