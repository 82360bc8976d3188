#pragma once
#include "ir/dtype.h"
#include "support/cuda/bare_matmul.h"
#include "support/cuda/driver.h"
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <scalide/scalide.h>
#include <string>
#include <vector>

namespace scalide {

/// Prints a line `finding: <test>: <message>`, which ./check --gpu collects.
[[gnu::format(printf, 1, 2)]] void finding(const char *format, ...);

/// Device memory of the probes.
class DeviceBytes {
public:
    DeviceBytes(scalide_context *context, const std::vector<unsigned char> &bytes);
    DeviceBytes(DeviceBytes &&other) noexcept;
    DeviceBytes(const DeviceBytes &) = delete;
    ~DeviceBytes();

    void *data() const { return memory_; }
    std::vector<unsigned char> read() const;

private:
    scalide_context *context_;
    void *memory_ = nullptr;
    size_t size_;
};

/// Encodes numbers in a dtype, and decodes them.
std::vector<unsigned char> codes_of(Dtype dtype, const std::vector<double> &values);
std::vector<double> values_of(Dtype dtype, const std::vector<unsigned char> &codes);

/// Questions that NVIDIA's manual leaves open, asked of cuBLASLt on a card. What programs depend on is expected; the rest is a finding.
class probes : public testing::Test {
protected:
    void SetUp() override;
    void TearDown() override;

    DeviceBytes on_device(const std::vector<unsigned char> &bytes) const { return {context_, bytes}; }
    DeviceBytes on_device(Dtype dtype, const std::vector<double> &values) const { return {context_, codes_of(dtype, values)}; }
    /// Returns encoded random numbers of about 2^-4. Zeros would not do: the clock rate of a GPU depends on the data.
    DeviceBytes random(Dtype dtype, int64_t count) const;
    /// Milliseconds of one call among many that append work to the stream: the minimum of five groups.
    double milliseconds(const std::function<void()> &call) const;
    double milliseconds(const BareMatmul &matmul, const cublaslt::Algorithm &algorithm) const;
    /// SCALIDE_CARD_SHRINK divides the sizes of what is timed, to try it without a card.
    static int64_t shrunk(int64_t extent);

    std::unique_ptr<Driver> driver_;
    const cublaslt::Calls *library_ = nullptr;
    scalide_context *context_ = nullptr;
    std::unique_ptr<DeviceBytes> workspace_;
};

} // namespace scalide
