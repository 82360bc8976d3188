// card.probes_of_schedules.*: choices of our schedules that no tile number tries, each as small kernels beside the driver's copy in the
// same run. What they compute is expected; how fast is a finding, which names the file that chooses.
#include "card/probe_kernels.h"
#include "card/probes.h"
#include <algorithm>
#include <cmath>
#include <cstring>

namespace scalide {

namespace {

class probes_of_schedules : public probes {
protected:
    struct Arguments {
        const DeviceBytes &in, &out, &side;
        int64_t columns = 0, rows = 0;
    };

    /// Appends a kernel to the stream, as often as asked.
    std::function<void()> work(const ProbeKernel &kernel, const Arguments &arguments, int64_t blocks_x, int64_t blocks_y = 1) {
        return
            [this, function = driver_->load(kernel.ptx, kernel.name), threads = static_cast<unsigned>(kernel.threads),
             shared = static_cast<unsigned>(kernel.shared_bytes), in = arguments.in.data(), out = arguments.out.data(),
             side = arguments.side.data(), columns = static_cast<uint32_t>(arguments.columns), rows = static_cast<uint32_t>(arguments.rows),
             blocks = Driver::Blocks{static_cast<unsigned>(blocks_x), static_cast<unsigned>(blocks_y)}]() mutable {
                void *values[] = {&in, &out, &side, &columns, &rows};
                driver_->launch(function, blocks, threads, shared, values);
            };
    }

    DeviceBytes zeros(int64_t bytes) const { return on_device(std::vector<unsigned char>(static_cast<size_t>(bytes))); }
    std::vector<unsigned char> read(const DeviceBytes &array) const {
        driver_->wait();
        return array.read();
    }

    /// GB/s, read and written, of a call and of the driver's copy of the same size, and the choice of Scalide that is tested.
    void report(const std::string &what, int64_t read, int64_t written, const std::function<void()> &call, const char *choice) const {
        const DeviceBytes from = zeros((read + written) / 2), to = zeros((read + written) / 2);
        const auto gigabytes = [&](const std::function<void()> &timed) {
            return static_cast<double>(read + written) * 1e-6 / milliseconds(timed);
        };
        const double ours = gigabytes(call),
                     copy = gigabytes([&] { driver_->copy(to.data(), from.data(), static_cast<size_t>(read + written) / 2); });
        finding("%s: %.4g GB/s, %.3f of the copy's speed (%s)", what.c_str(), ours, ours / copy, choice);
    }

    /// Bytes of an argument.
    static int64_t whole() { return std::max<int64_t>(shrunk(int64_t{1} << 27), int64_t{1} << 15); }
};

/// The code of e5m2 below a magnitude: f16, rounded, then cut.
double cut(double value) { return value_of(Dtype::f8_e5m2, code_of(Dtype::f16, value) >> 8); }

uint32_t word_at(const std::vector<unsigned char> &bytes, int64_t index) {
    uint32_t word;
    std::memcpy(&word, bytes.data() + 4 * index, sizeof word);
    return word;
}

} // namespace

TEST_F(probes_of_schedules, functions_of_8_bit_results) {
    const int64_t count = whole();
    std::vector<unsigned char> codes(static_cast<size_t>(count));
    for (size_t i = 0; i < codes.size(); i++) codes[i] = static_cast<unsigned char>(i);
    const DeviceBytes in = on_device(codes), out = zeros(count);
    const struct {
        ProbeKernel kernel;
        double of_value, of_argument; ///< errors, of gelu(x) and of x, by the manual's of the instructions
        const char *what;
    } ways[] = {{gelu_by_exponential(), 0x1p-20, 0, "gelu of e5m2 by ex2 and rcp"},
                {gelu_by_tangent(), 0x1p-20, 0.5 * 0x1.1p-11, "gelu of e5m2 by tanh.approx"}};
    for (const auto &way : ways) {
        const auto run = work(way.kernel, {in, out, out}, count / (16 * way.kernel.threads));
        run();
        const std::vector<unsigned char> got = read(out);
        int different = 0;
        for (size_t i = 0; i < got.size(); i++) {
            const double x = value_of(Dtype::f8_e5m2, codes[i]);
            if (!std::isfinite(x)) continue;
            const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x), exact = x / (1 + std::exp(-2 * u)),
                         value = value_of(Dtype::f8_e5m2, got[i]), error = way.of_value * std::fabs(exact) + way.of_argument * std::fabs(x);
            if (i < 256) different += value != cut(exact);
            ASSERT_TRUE(value >= cut(exact - error) && value <= cut(exact + error)) << way.what << ": " << value << " for gelu of " << x;
        }
        report(std::string(way.what) + ", " + std::to_string(different) + " codes of 248 are others", count, count, run,
               "lower/math/exp.cpp: a polynomial and a division in all numerics");
    }
}

TEST_F(probes_of_schedules, amax_beside_a_map) {
    const int64_t count = whole() / 2, words = count / 16;
    const DeviceBytes in = random(Dtype::bf16, count), out = zeros(count);
    uint32_t expected = 0;
    for (const double value : values_of(Dtype::bf16, read(in)))
        expected = std::max(expected, std::bit_cast<uint32_t>(static_cast<float>(std::fabs(value))));
    for (const auto &[kernel, what, results] : {std::tuple(amax_of_threads(), "a word a thread", words),
                                                std::tuple(amax_of_blocks(), "a word a block, through shared memory", words / 256)}) {
        const auto blocks_of = [](int64_t count_of_words) { return (count_of_words + 4095) / 4096; };
        // Whole blocks are read; after the words there are zeros.
        const DeviceBytes side = zeros(blocks_of(results) * 16384), second = zeros(blocks_of(blocks_of(results)) * 16384),
                          last = zeros(16384);
        const auto main = work(kernel, {in, out, side}, count / (16 * kernel.threads)),
                   fold = work(largest_words(), {side, out, second}, blocks_of(results)),
                   end = work(largest_words(), {second, out, last}, blocks_of(blocks_of(results)));
        ASSERT_LE(blocks_of(results), 4096);
        const auto run = [&] { main(), fold(), end(); };
        run();
        EXPECT_EQ(word_at(read(last), 0), expected) << what;
        report(std::string("bf16 to e5m2 with its largest magnitude, ") + what, 2 * count, count, run,
               "schedules/gpu/tiled.cpp: a word a block");
    }
}

TEST_F(probes_of_schedules, stores_of_a_transposition) {
    const int64_t rows = std::max<int64_t>(256, shrunk(8192)), columns = std::max<int64_t>(128, whole() / rows);
    const DeviceBytes in = random(Dtype::f8_e4m3fn, rows * columns), out = zeros(rows * columns);
    const std::vector<unsigned char> given = read(in);
    for (const int bytes : {4, 16}) {
        const auto run = work(transpose(bytes), {in, out, out, columns, rows}, columns / 128, rows / 128);
        run();
        const std::vector<unsigned char> got = read(out);
        for (int64_t i = 0; i < rows * columns; i++)
            ASSERT_EQ(got[static_cast<size_t>(i % columns * rows + i / columns)], given[static_cast<size_t>(i)])
                << bytes << ": element " << i;
        report("transposition of bytes, stores of " + std::to_string(bytes), rows * columns, rows * columns, run,
               "schedules/gpu/tiled.cpp: a thread writes 4 bytes");
    }
}

TEST_F(probes_of_schedules, rows_that_a_thread_adds) {
    const int64_t rows = std::max<int64_t>(1024, shrunk(16384)), columns = std::max<int64_t>(128, whole() / 4 / rows);
    std::vector<double> values;
    for (int64_t i = 0; i < rows * columns; i++) values.push_back(static_cast<double>((i * 7919 + i / columns) % 17 - 8));
    const DeviceBytes in = on_device(Dtype::f32, values), out = zeros(4 * columns);
    std::vector<double> expected(static_cast<size_t>(columns));
    for (int64_t i = 0; i < rows * columns; i++) expected[static_cast<size_t>(i % columns)] += values[static_cast<size_t>(i)];
    const ProbeKernel kernel = column_sums();
    for (int64_t height = 16; 8 * height <= rows; height *= 2) {
        const int64_t blocks = rows / height;
        const DeviceBytes sums = zeros(4 * columns * blocks);
        const auto first = work(kernel, {in, sums, sums, columns, height}, columns / kernel.threads, blocks),
                   second = work(kernel, {sums, out, out, columns, blocks}, columns / kernel.threads);
        const auto run = [&] { first(), second(); };
        run();
        EXPECT_EQ(values_of(Dtype::f32, read(out)), expected) << height;
        report("sum of columns of f32, a thread adds " + std::to_string(height) + " rows", 4 * rows * columns, 0, run,
               "lower/rows/column.cpp: a thread adds 128 to 512 rows");
    }
}

TEST_F(probes_of_schedules, who_makes_a_row) {
    const int64_t count = whole() / 2;
    const DeviceBytes in = random(Dtype::bf16, count), out = zeros(2 * count);
    const std::vector<double> given = values_of(Dtype::bf16, read(in));
    for (int columns = 128; columns <= 4096; columns *= 2) {
        for (const auto &[kernel, who, rows] :
             {std::tuple(softmax_in_warp(columns), "a warp", 4), std::tuple(softmax_in_block(columns), "a block", 1)}) {
            const auto run = work(kernel, {in, out, out}, count / columns / rows);
            run();
            const std::vector<double> got = values_of(Dtype::bf16, read(out));
            for (int64_t row = 0; row < count; row += columns) {
                double sum = 0;
                for (int64_t i = row; i < row + columns; i++) sum += std::exp(given[static_cast<size_t>(i)]);
                for (int64_t i = row; i < row + columns; i++) {
                    const double exact = std::exp(given[static_cast<size_t>(i)]) / sum;
                    ASSERT_NEAR(got[static_cast<size_t>(i)], exact, 0x1.1p-8 * exact) << who << ", " << columns << " columns: " << i;
                }
            }
            report("softmax of " + std::to_string(columns) + " columns of bf16 by " + who, 2 * count, 2 * count, run,
                   "lower/rows/row.cpp: a warp makes rows of 128 to 1024 columns, a block longer ones");
        }
    }
}

TEST_F(probes_of_schedules, vectors_of_a_thread) {
    const int64_t bytes = std::max<int64_t>(whole(), 16 * 4 * 1024);
    const DeviceBytes in = random(Dtype::bf16, bytes / 2), out = zeros(bytes);
    std::vector<double> expected = values_of(Dtype::bf16, read(in));
    for (double &value : expected) value *= 2;
    const std::vector<unsigned char> codes = codes_of(Dtype::bf16, expected);
    for (const int threads : {64, 128, 256, 512, 1024}) {
        for (const int vectors : {1, 2, 4}) {
            const auto run = work(doubles(vectors, threads), {in, out, out}, bytes / (16 * vectors * threads));
            run();
            ASSERT_EQ(read(out), codes) << threads << " threads, " << vectors;
            report("a map of bf16, " + std::to_string(threads) + " threads, each 16 bytes " + std::to_string(vectors) + " times", bytes,
                   bytes, run, "schedules/gpu/map.cpp, tiles.yaml: 256 threads, each once");
        }
    }
}

} // namespace scalide
