#include "card/probes.h"
#include "card/card.h"
#include "cublaslt/cublaslt.h"
#include "performance/measuring.h"
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace scalide {

void finding(const char *format, ...) {
    va_list values;
    va_start(values, format);
    std::printf("finding: %s: ", testing::UnitTest::GetInstance()->current_test_info()->name());
    std::vprintf(format, values);
    std::printf("\n");
    va_end(values);
}

DeviceBytes::DeviceBytes(scalide_context *context, const std::vector<unsigned char> &bytes) : context_(context), size_(bytes.size()) {
    if (scalide_allocate(context, size_, &memory_) != SCALIDE_OK || scalide_copy_in(context, memory_, bytes.data(), size_) != SCALIDE_OK)
        throw std::runtime_error(scalide_message(context));
}
DeviceBytes::DeviceBytes(DeviceBytes &&other) noexcept
    : context_(other.context_), memory_(std::exchange(other.memory_, nullptr)), size_(other.size_) {}
DeviceBytes::~DeviceBytes() { scalide_release(context_, memory_); }

std::vector<unsigned char> DeviceBytes::read() const {
    std::vector<unsigned char> bytes(size_);
    if (scalide_copy_out(context_, bytes.data(), memory_, size_) != SCALIDE_OK) throw std::runtime_error(scalide_message(context_));
    return bytes;
}

std::vector<unsigned char> codes_of(Dtype dtype, const std::vector<double> &values) {
    const auto width = static_cast<size_t>(size_of(dtype));
    std::vector<unsigned char> codes(values.size() * width);
    for (size_t i = 0; i < values.size(); i++) {
        const uint32_t code = code_of(dtype, values[i]);
        std::memcpy(codes.data() + i * width, &code, width);
    }
    return codes;
}

std::vector<double> values_of(Dtype dtype, const std::vector<unsigned char> &codes) {
    const auto width = static_cast<size_t>(size_of(dtype));
    std::vector<double> values;
    for (size_t i = 0; i < codes.size(); i += width) {
        uint32_t code = 0;
        std::memcpy(&code, codes.data() + i, width);
        values.push_back(value_of(dtype, code));
    }
    return values;
}

void probes::SetUp() {
    if (!why_no_card().empty()) GTEST_SKIP() << why_no_card();
    char words[512] = "";
    Text why(words, sizeof words);
    library_ = load_cublaslt(why);
    if (!library_) GTEST_SKIP() << words;
    driver_ = std::make_unique<Driver>();
    scalide_options options{};
    options.struct_size = sizeof options;
    options.device = SCALIDE_CUDA;
    options.stream = driver_->stream();
    ASSERT_EQ(scalide_context_create(&options, &context_), SCALIDE_OK);
    workspace_ = std::make_unique<DeviceBytes>(context_, std::vector<unsigned char>(bare_workspace));
}

void probes::TearDown() {
    workspace_.reset();
    if (context_) scalide_context_destroy(context_);
}

DeviceBytes probes::random(Dtype dtype, int64_t count) const {
    std::mt19937 draw(1);
    std::vector<unsigned char> codes(static_cast<size_t>(count * size_of(dtype)));
    measuring::fill(codes.data(), static_cast<int32_t>(dtype), static_cast<size_t>(count), draw);
    return on_device(codes);
}

double probes::milliseconds(const BareMatmul &matmul, const cublaslt::Algorithm &algorithm) const {
    return milliseconds([&] {
        if (matmul.run(algorithm, driver_->stream()) != 0) throw std::runtime_error("a product failed");
    });
}

double probes::milliseconds(const std::function<void()> &call) const {
    const auto time = [&](int count) {
        const auto start = measuring::Clock::now();
        for (int i = 0; i < count; i++) call();
        driver_->wait();
        return measuring::milliseconds_since(start) / count;
    };
    time(1);
    const int group = std::max(1, static_cast<int>(20 / std::max(time(1), 1e-3)));
    double least = 1e30;
    for (int i = 0; i < 5; i++) least = std::min(least, time(group));
    return least;
}

int64_t probes::shrunk(int64_t extent) {
    const char *shrink = std::getenv("SCALIDE_CARD_SHRINK");
    return std::max<int64_t>(128, extent / (shrink ? std::atoi(shrink) : 1));
}

} // namespace scalide
