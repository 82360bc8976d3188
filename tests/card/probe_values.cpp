// card.probes.*: which matmuls cuBLASLt offers on this GPU, and which values it computes.
#include "card/probes.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace scalide {

namespace {

using namespace cublaslt;

constexpr uint32_t epilogue_gelu = 32; // CUBLASLT_EPILOGUE_GELU

int32_t type_of(Dtype dtype) { return cublaslt_type(static_cast<int32_t>(dtype)); }

/// A product with all that an f8 one can have.
struct Product {
    Dtype a = Dtype::f8_e4m3fn, b = Dtype::f8_e4m3fn, d = Dtype::bf16;
    int64_t m = 64, n = 64, k = 64;
    uint32_t epilogue = epilogue_default;
    Dtype bias_dtype = Dtype::bf16;
    bool amax = false;
    bool fast_accumulation = false, tf32 = false;
    std::vector<double> a_values = {}, b_values = {}, bias = {}; ///< k contiguous
    double scale_d = 1;

    BareDesc desc() const {
        return {.a = type_of(a),
                .b = type_of(b),
                .d = type_of(d),
                .m = m,
                .n = n,
                .k = k,
                .epilogue = epilogue,
                .bias = type_of(bias_dtype),
                .fast_accumulation = fast_accumulation,
                .tf32 = tf32};
    }
};

/// Integers from -2 to 2 that look random.
std::vector<double> small_integers(int64_t count, int64_t seed) {
    std::vector<double> values;
    for (int64_t i = 0; i < count; i++) values.push_back(static_cast<double>((i * 7919 + seed * 104729 + i * i % 31) % 5) - 2);
    return values;
}

/// Whose sums are exact in every format of sums.
Product exact(Product product) {
    product.a_values = small_integers(product.m * product.k, 1);
    product.b_values = small_integers(product.n * product.k, 2);
    product.bias = small_integers(product.m, 3);
    return product;
}

struct Answer {
    std::string problem; ///< why there is no result
    std::vector<double> d;
    std::vector<unsigned char> codes;
    double amax = 0;
    int found = 0;
};

class probes_of_values : public probes {
protected:
    Answer ask(const Product &product, const Algorithm *algorithm = nullptr) const {
        const DeviceBytes a = on_device(product.a, product.a_values), b = on_device(product.b, product.b_values),
                          d = on_device(product.d, std::vector<double>(static_cast<size_t>(product.m * product.n), 0.0)),
                          bias = on_device(product.bias_dtype, product.bias.empty() ? std::vector<double>(1, 0.0) : product.bias),
                          scale = on_device(Dtype::f32, {product.scale_d}), amax = on_device(Dtype::f32, {0.0});
        BarePointers pointers{.a = a.data(), .b = b.data(), .d = d.data(), .workspace = workspace_->data()};
        if (product.epilogue & epilogue_bias) pointers.bias = bias.data();
        if (product.amax) pointers.amax = amax.data(), pointers.scale_d = scale.data();
        Answer answer;
        try {
            const BareMatmul matmul(*library_, product.desc(), pointers);
            const std::vector<HeuristicResult> candidates = matmul.candidates(8);
            answer.found = static_cast<int>(candidates.size());
            if (candidates.empty()) return answer.problem = "no algorithm", answer;
            const Status status = matmul.run(algorithm ? *algorithm : candidates[0].algorithm, driver_->stream());
            if (status != 0) return answer.problem = std::string("a run gives ") + library_->status_name(status), answer;
            driver_->wait();
        } catch (const std::runtime_error &error) {
            return answer.problem = error.what(), answer;
        }
        answer.codes = d.read();
        answer.d = values_of(product.d, answer.codes);
        answer.amax = values_of(Dtype::f32, amax.read())[0];
        return answer;
    }

    /// "right", or what is wrong, of a product of exact values without gelu.
    std::string verdict(const Product &product) const {
        const Answer answer = ask(product);
        if (!answer.problem.empty()) return answer.problem;
        double amax = 0;
        for (int64_t column = 0; column < product.n; column++) {
            for (int64_t row = 0; row < product.m; row++) {
                double sum = 0;
                for (int64_t k = 0; k < product.k; k++)
                    sum += product.a_values[static_cast<size_t>(row * product.k + k)] *
                           product.b_values[static_cast<size_t>(column * product.k + k)];
                if (product.epilogue & epilogue_bias) sum += product.bias[static_cast<size_t>(row)];
                if (product.epilogue & epilogue_relu) sum = std::max(sum, 0.0);
                amax = std::max(amax, std::fabs(sum));
                const double expected = round_to(product.d, product.amax ? sum * product.scale_d : sum);
                const double got = answer.d[static_cast<size_t>(row + column * product.m)];
                if (got != expected) return "wrong: " + std::to_string(got) + " for " + std::to_string(expected);
            }
        }
        if (product.amax && answer.amax != amax) return "amax is wrong: " + std::to_string(answer.amax) + " for " + std::to_string(amax);
        return "right";
    }
};

/// One sum in a product of 16 x 16: `x` times `y` along k, of which `bias` is added.
Product one_sum(Dtype d, const std::vector<double> &x, const std::vector<double> &y, double bias = 0) {
    Product product{.d = d, .m = 16, .n = 16, .k = static_cast<int64_t>(x.size()), .epilogue = epilogue_bias};
    for (int i = 0; i < 16; i++) {
        product.a_values.insert(product.a_values.end(), x.begin(), x.end());
        product.b_values.insert(product.b_values.end(), y.begin(), y.end());
    }
    product.bias.assign(16, bias);
    if (d == Dtype::f16) product.bias_dtype = d;
    return product;
}

std::vector<double> first_of(int64_t count, std::vector<double> values) {
    values.resize(static_cast<size_t>(count), 0.0);
    return values;
}

std::string name_of(Dtype dtype) { return std::string(to_string(dtype)); }

std::string hex_of(const Algorithm &algorithm) {
    std::string text;
    for (const uint64_t word : algorithm.data) {
        char digits[17];
        std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(word));
        text += digits;
    }
    return text;
}

Algorithm algorithm_of(const std::string &hex) {
    Algorithm algorithm{};
    for (size_t i = 0; i < std::size(algorithm.data); i++) algorithm.data[i] = std::stoull(hex.substr(16 * i, 16), nullptr, 16);
    return algorithm;
}

} // namespace

/// Programs pad each extent of f8 operands to 16.
TEST_F(probes_of_values, extents) {
    for (int64_t Product::*const extent : {&Product::m, &Product::n, &Product::k}) {
        const char *name = extent == &Product::m ? "m" : extent == &Product::n ? "n" : "k";
        for (const int64_t size : {1, 4, 8, 12, 15, 16, 17, 24, 48}) {
            Product product;
            product.*extent = size;
            const std::string words = verdict(exact(product));
            finding("%s %d: %s", name, static_cast<int>(size), words.c_str());
            EXPECT_TRUE(size % 16 != 0 || words == "right") << name << ' ' << size << ": " << words;
        }
    }
}

/// schedules/dispatch.yaml asks for none and bias; amax and a factor beside f8 results.
TEST_F(probes_of_values, epilogues) {
    using enum Dtype;
    constexpr std::pair<Dtype, Dtype> operands[] = {{f8_e4m3fn, f8_e4m3fn}, {f8_e4m3fn, f8_e5m2}, {f8_e5m2, f8_e4m3fn}};
    for (const auto &[a, b] : operands) {
        for (const Dtype d : {f32, f16, bf16, f8_e4m3fn, f8_e5m2}) {
            for (const uint32_t epilogue : {1u, 4u, 2u, 6u, epilogue_gelu, epilogue_gelu | 4u}) {
                const bool is_f8 = size_of(d) == 1, is_ours = epilogue == epilogue_default || epilogue == epilogue_bias;
                Product product{
                    .a = a, .b = b, .d = d, .epilogue = epilogue, .bias_dtype = d == f16 ? f16 : bf16, .amax = is_f8, .scale_d = 0.5};
                const bool is_gelu = (epilogue & epilogue_gelu) != 0;
                const std::string problem = is_gelu ? ask(exact(product)).problem : "";
                const std::string words = is_gelu ? problem.empty() ? "runs" : problem : verdict(exact(product));
                finding("%s x %s to %s, epilogue %u: %s", name_of(a).c_str(), name_of(b).c_str(), name_of(d).c_str(), epilogue,
                        words.c_str());
                const bool has_row = !(d == f8_e5m2 && a == b);
                EXPECT_TRUE(!is_ours || !has_row || words == "right")
                    << name_of(a) << " x " << name_of(b) << " to " << name_of(d) << ", epilogue " << epilogue << ": " << words;
            }
        }
    }
}

/// 257 has nine bits, bf16 has eight: the bias must meet the sum, not what is stored of it.
TEST_F(probes_of_values, bias_meets_the_unrounded_sum) {
    const std::vector<double> x = first_of(16, {16, 1});
    EXPECT_EQ(ask(one_sum(Dtype::bf16, x, x, -256)).d.at(0), 1);
}

TEST_F(probes_of_values, overflow) {
    const std::vector<double> x = first_of(16, {448}), minus = first_of(16, {-448});
    EXPECT_EQ(ask(one_sum(Dtype::f8_e4m3fn, x, x)).d.at(0), 448);
    EXPECT_EQ(ask(one_sum(Dtype::f8_e4m3fn, x, minus)).d.at(0), -448);
    EXPECT_EQ(ask(one_sum(Dtype::f16, x, x)).d.at(0), INFINITY);
    EXPECT_EQ(ask(one_sum(Dtype::f16, x, minus)).d.at(0), -INFINITY);
}

TEST_F(probes_of_values, nan) {
    const std::vector<double> x = first_of(16, {NAN}), one = first_of(16, {1});
    for (const Dtype d : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f8_e4m3fn}) {
        Product product = one_sum(d, x, one);
        const Answer answer = ask(product);
        EXPECT_TRUE(std::isnan(answer.d.at(0))) << name_of(d);
        finding("NaN in %s has the code %u in its lowest byte", name_of(d).c_str(), static_cast<unsigned>(answer.codes.at(0)));
        product.epilogue = epilogue_relu | epilogue_bias;
        const Answer relu = ask(product);
        finding("relu of NaN in %s: %s", name_of(d).c_str(),
                relu.problem.empty() ? std::to_string(relu.d.at(0)).c_str() : relu.problem.c_str());
    }
}

/// A sum that begins with 1 and goes on with 2^-14: how much of the rest is kept. Accumulators of 14 bits lose those that they meet beside
/// the 1; what moves to f32 in between keeps the others.
TEST_F(probes_of_values, promotion) {
    for (const int64_t k : {32, 64, 128, 256, 512, 1024, 4096, 16384}) {
        std::vector<double> x(static_cast<size_t>(k), std::exp2(-7));
        x[0] = 1;
        double kept[2];
        for (const bool fast : {false}) {
            Product product = one_sum(Dtype::f32, x, x);
            product.epilogue = epilogue_default;
            product.fast_accumulation = fast;
            kept[fast] = (ask(product).d.at(0) - 1) / (static_cast<double>(k - 1) * std::exp2(-14));
        }
        finding("k %d: %.4f of the small terms are kept, %.4f with fast accumulation", static_cast<int>(k), kept[0], kept[1]);
        EXPECT_GE(kept[0], kept[1]);
        EXPECT_TRUE(k < 4096 || kept[0] > 0.8) << "k " << k;
    }
}

/// The last of 11 significant bits of 1 is 2^-10. Operands lie at and next to half of it, above an even and an odd last bit.
TEST_F(probes_of_values, tf32_rounds_operands_to_nearest) {
    constexpr double bit = 0x1p-10, least = 0x1p-23;
    for (const double sign : {1.0, -1.0}) {
        for (const double last : {0.0, bit}) {
            for (const double rest : {bit / 2 - least, bit / 2, bit / 2 + least}) {
                const double exact = sign * (1 + last + rest);
                Product product = one_sum(Dtype::f32, first_of(16, {exact}), first_of(16, {1}));
                product.a = product.b = Dtype::f32, product.epilogue = epilogue_default, product.tf32 = true;
                const Answer answer = ask(product);
                ASSERT_EQ(answer.problem, "");
                const double got = answer.d.at(0), away = sign * (1 + last + bit), towards = sign * (1 + last);
                finding("%.9g becomes %.9g: %s", exact, got, got == away ? "away from zero" : got == towards ? "towards zero" : "other");
                if (rest != bit / 2) EXPECT_EQ(got, rest > bit / 2 ? away : towards) << exact;
            }
        }
    }
}

/// The runtime asks for multiples of 16 bytes of the matrices and of the scales. Which other pointers cuBLASLt takes is a finding.
TEST_F(probes_of_values, alignment_of_each_pointer) {
    const Product product = exact({.a = Dtype::f8_e4m3fn, .d = Dtype::f8_e4m3fn, .epilogue = epilogue_bias, .amax = true});
    const std::vector<unsigned char> zeros(2 * 64 * 64 + 64, 0), ones = [] {
        std::vector<unsigned char> floats;
        for (int i = 0; i < 16; i++) floats.insert(floats.end(), {0, 0, 0x80, 0x3f});
        return floats;
    }();
    const DeviceBytes a = on_device(zeros), b = on_device(zeros), d = on_device(zeros), bias = on_device(zeros), amax = on_device(zeros),
                      scale_a = on_device(ones), scale_b = on_device(ones), scale_d = on_device(ones);
    struct {
        const char *name;
        const DeviceBytes *memory;
    } const pointers[] = {{"a", &a},       {"b", &b},      {"d", &d}, {"scale_a", &scale_a}, {"scale_b", &scale_b}, {"scale_d", &scale_d},
                          {"bias", &bias}, {"amax", &amax}};
    for (const auto &[name, memory] : pointers) {
        for (const int bytes : {2, 4, 8, 16, 32}) {
            const bool is_f32 = name[0] == 's' || memory == &amax;
            if (is_f32 && bytes < 4) continue;
            const auto at = [&](const DeviceBytes &other) { return static_cast<char *>(other.data()) + (&other == memory ? bytes : 0); };
            const BareMatmul matmul(*library_, product.desc(),
                                    {.a = at(a),
                                     .b = at(b),
                                     .d = at(d),
                                     .scale_a = at(scale_a),
                                     .scale_b = at(scale_b),
                                     .scale_d = at(scale_d),
                                     .bias = at(bias),
                                     .amax = at(amax),
                                     .workspace = workspace_->data()});
            const std::vector<HeuristicResult> candidates = matmul.candidates(8);
            int running = 0;
            for (const HeuristicResult &candidate : candidates) running += matmul.run(candidate.algorithm, driver_->stream()) == 0;
            driver_->wait();
            finding("%s at %d bytes: %d of %d algorithms run", name, bytes, running, static_cast<int>(candidates.size()));
            EXPECT_TRUE(bytes % 16 != 0 || running > 0) << name << " at " << bytes;
        }
    }
}

/// The layouts in which programs store scales of rows and blocks (scalide/plan.h). If a GPU has the mode, values must be right.
TEST_F(probes_of_values, scales_of_rows_and_blocks) {
    constexpr std::pair<const char *, int32_t> modes[] = {{"rows", outer_vec_32f}, {"1x128", vec128_32f}, {"128x128", blk128x128_32f}};
    const Product product = exact({.d = Dtype::f32, .m = 256, .n = 384, .k = 640});
    const auto blocks = [](int64_t extent) { return (extent + 127) / 128; };
    // A power of two for each place along m or n, and along k.
    const auto scale_of = [](int32_t mode, int64_t outer, int64_t k) {
        const int64_t row = mode == blk128x128_32f ? outer / 128 : outer, column = mode == outer_vec_32f ? 0 : k / 128;
        return std::exp2(static_cast<double>((row + 3 * column) % 4));
    };
    const auto stored = [&](int32_t mode, int64_t extent) {
        const int64_t along_k = mode == blk128x128_32f ? (blocks(product.k) + 3) / 4 * 4 : blocks(product.k);
        std::vector<double> values(static_cast<size_t>(extent * along_k), 1.0);
        for (int64_t outer = 0; outer < extent; outer++)
            for (int64_t k = 0; k < product.k; k += 128) {
                const int64_t place = mode == blk128x128_32f ? outer / 128 * along_k + k / 128 : outer + k / 128 * extent;
                if (mode != outer_vec_32f || k == 0) values[static_cast<size_t>(place)] = scale_of(mode, outer, k);
            }
        return values;
    };
    const DeviceBytes a = on_device(product.a, product.a_values), b = on_device(product.b, product.b_values);
    for (const auto &[a_name, a_mode] : modes) {
        for (const auto &[b_name, b_mode] : modes) {
            const DeviceBytes d = on_device(Dtype::f32, std::vector<double>(static_cast<size_t>(product.m * product.n), 0.0)),
                              a_scales = on_device(Dtype::f32, stored(a_mode, product.m)),
                              b_scales = on_device(Dtype::f32, stored(b_mode, product.n));
            BareDesc desc = product.desc();
            desc.a_scale_mode = a_mode, desc.b_scale_mode = b_mode;
            std::string words = "right";
            try {
                const BareMatmul matmul(*library_, desc,
                                        {.a = a.data(),
                                         .b = b.data(),
                                         .d = d.data(),
                                         .scale_a = a_scales.data(),
                                         .scale_b = b_scales.data(),
                                         .workspace = workspace_->data()});
                const std::vector<HeuristicResult> candidates = matmul.candidates(1);
                if (candidates.empty() || matmul.run(candidates[0].algorithm, driver_->stream()) != 0) words = "no algorithm";
                driver_->wait();
            } catch (const std::runtime_error &error) {
                words = error.what();
            }
            const std::vector<double> got = values_of(Dtype::f32, d.read());
            for (int64_t i = 0; words == "right" && i < product.m * product.n; i++) {
                const int64_t row = i % product.m, column = i / product.m;
                double sum = 0;
                for (int64_t k = 0; k < product.k; k++)
                    sum += product.a_values[static_cast<size_t>(row * product.k + k)] * scale_of(a_mode, row, k) *
                           product.b_values[static_cast<size_t>(column * product.k + k)] * scale_of(b_mode, column, k);
                if (got[static_cast<size_t>(i)] != sum) words = "wrong at " + std::to_string(row) + ", " + std::to_string(column);
            }
            finding("%s x %s: %s", a_name, b_name, words.c_str());
            EXPECT_EQ(words.find("wrong"), std::string::npos) << a_name << " x " << b_name << ": " << words;
        }
    }
}

TEST_F(probes_of_values, a_fixed_algorithm_repeats_its_bits) {
    Product product{.m = shrunk(1024), .n = shrunk(1024), .k = shrunk(4096)};
    for (int64_t i = 0; i < product.m * product.k; i++) product.a_values.push_back(std::sin(static_cast<double>(i)));
    for (int64_t i = 0; i < product.n * product.k; i++) product.b_values.push_back(std::cos(static_cast<double>(i * i % 1009)));
    const std::vector<unsigned char> first = ask(product).codes;
    ASSERT_FALSE(first.empty());
    for (int i = 0; i < 20; i++) ASSERT_EQ(ask(product).codes, first) << "run " << i;
}

/// The bytes of an algorithm are kept on disk. A second process, which has them in its environment, prints what they compute.
TEST_F(probes_of_values, an_algorithm_lives_in_another_process) {
    const Product product = exact({.m = 256, .n = 256, .k = 512});
    if (const char *hex = std::getenv("SCALIDE_PROBE_ALGORITHM")) {
        const Algorithm algorithm = algorithm_of(hex);
        std::printf("result %zu\n", std::hash<std::string>()(testing::PrintToString(ask(product, &algorithm).codes)));
        return;
    }
    const DeviceBytes a = on_device(product.a, product.a_values), b = on_device(product.b, product.b_values),
                      d = random(product.d, 256 * 256);
    const BareMatmul matmul(*library_, product.desc(), {.a = a.data(), .b = b.data(), .d = d.data(), .workspace = workspace_->data()});
    const std::vector<HeuristicResult> candidates = matmul.candidates(1);
    ASSERT_FALSE(candidates.empty());
    const std::string expected = "result " + std::to_string(std::hash<std::string>()(testing::PrintToString(ask(product).codes))) + "\n";
    const std::string command = "SCALIDE_PROBE_ALGORITHM=" + hex_of(candidates[0].algorithm) + " '" +
                                std::filesystem::read_symlink("/proc/self/exe").string() +
                                "' --gtest_filter=probes_of_values.an_algorithm_lives_in_another_process";
    std::FILE *child = popen(command.c_str(), "r");
    std::string output;
    for (char line[256]; std::fgets(line, sizeof line, child);) output += line;
    EXPECT_EQ(pclose(child), 0);
    EXPECT_NE(output.find(expected), std::string::npos) << output;
}

} // namespace scalide
