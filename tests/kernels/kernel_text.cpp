#include "kernels/kernel_text.h"
#include "support/programs/zeros.h"
#include "support/rounding_errors/running_error.h"
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sstream>

namespace scalide {
namespace {

namespace fs = std::filesystem;
constexpr unsigned seed = 20261121;

Extent::Bindings parse_sizes(const std::string &text) {
    Extent::Bindings sizes;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
        const size_t equal = word.find('=');
        sizes[word.substr(0, equal)] = std::stoll(word.substr(equal + 1));
    }
    return sizes;
}

/// One element from or to its storage word.
double load_word(Dtype dtype, const uint8_t *word) {
    double wide = 0;
    uint32_t code = 0;
    std::memcpy(dtype == Dtype::f64 ? static_cast<void *>(&wide) : &code, word, size_t(size_of(dtype)));
    return dtype == Dtype::f64 ? wide : value_of(dtype, code);
}

void store_word(Dtype dtype, double value, uint8_t *word) {
    const uint32_t code = dtype == Dtype::f64 ? 0 : code_of(dtype, value);
    std::memcpy(word, dtype == Dtype::f64 ? static_cast<const void *>(&value) : &code, size_t(size_of(dtype)));
}

Words to_words(const Array &array) {
    const size_t size = size_t(size_of(array.dtype));
    Words words(array.data.size() * size);
    for (size_t i = 0; i < array.data.size(); i++) {
        store_word(array.dtype, array.data[i], &words[i * size]);
    }
    return words;
}

std::vector<double> to_doubles(Dtype dtype, const Words &words) {
    std::vector<double> data;
    for (size_t i = 0; i < words.size(); i += size_t(size_of(dtype))) {
        data.push_back(load_word(dtype, &words[i]));
    }
    return data;
}

class Inputs {
public:
    Inputs(const std::string &kind, unsigned seed) : kind_(kind), random_(seed) {}

    Array draw(const Type &type, const Extent::Bindings &sizes) {
        Array array = zeros(type, sizes);
        for (double &x : array.data) {
            // Through the storage word, so that both sides see the same number.
            uint8_t word[8] = {};
            store_word(type.dtype, element(type.dtype), word);
            x = load_word(type.dtype, word);
        }
        return array;
    }

private:
    double element(Dtype dtype) {
        if (dtype == Dtype::boolean) {
            return double(random_() % 2);
        }
        if (dtype == Dtype::i32) {
            return double(random_() % 10);
        }
        if (is_integer(dtype)) {
            const IntegerRange range = range_of(dtype);
            return double(std::uniform_int_distribution<int64_t>(int64_t(range.smallest), int64_t(range.largest))(random_));
        }
        if (kind_ == "special" && random_() % 8 == 0) {
            constexpr double infinity = std::numeric_limits<double>::infinity();
            const double values[] = {0.0, -0.0, infinity, -infinity, std::nan(""), 1e-40, 3e38};
            return values[random_() % std::size(values)];
        }
        if (kind_ == "whole") return double(std::uniform_int_distribution<>(-3, 3)(random_));
        return kind_ == "positive" ? std::uniform_real_distribution<>(0.1, 3)(random_) : std::uniform_real_distribution<>(-3, 3)(random_);
    }

    std::string kind_;
    std::mt19937 random_;
};

std::map<std::string, int> parse_counts(const std::string &text) {
    std::map<std::string, int> counts;
    std::istringstream parts(text);
    for (std::string name, count; parts >> std::ws && std::getline(parts, name, '=') && std::getline(parts, count, ';');) {
        counts[name] = std::stoi(count);
    }
    return counts;
}

} // namespace

KernelText read_kernel_text(const fs::path &path) {
    std::ifstream file(path);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    KernelText result;
    result.program = parse_program(text, path.string());
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind("# sizes:", 0) == 0) {
            std::istringstream parts(line.substr(8));
            for (std::string part; std::getline(parts, part, ';');) {
                result.sizes.push_back(parse_sizes(part));
            }
        } else if (line.rfind("# inputs: ", 0) == 0) {
            result.inputs = line.substr(10);
        } else if (line.rfind("# launches: ", 0) == 0) {
            result.launches = std::stoi(line.substr(12));
        } else if (line.rfind("# ptx: ", 0) == 0) {
            result.ptx = parse_counts(line.substr(7));
        }
    }
    if (result.sizes.empty()) {
        result.sizes.push_back({});
    }
    return result;
}

std::set<fs::path> kernel_texts() {
    std::set<fs::path> paths;
    const char *given = std::getenv("SCALIDE_KERNELS"); // of a pack (tests/card/pack)
    for (const fs::directory_entry &entry : fs::recursive_directory_iterator(given ? given : SCALIDE_KERNELS_DIR)) {
        if (entry.path().extension() == ".scl") {
            paths.insert(entry.path());
        }
    }
    return paths;
}

std::set<fs::path> kernel_texts_for_gpus() {
    std::set<fs::path> paths = kernel_texts();
    std::erase_if(paths, [](const fs::path &path) { return path.parent_path().filename() == "small"; });
    return paths;
}

KernelArguments draw_arguments(const KernelText &text, const Extent::Bindings &sizes) {
    Inputs inputs(text.inputs, seed);
    KernelArguments drawn;
    for (const Argument &argument : text.program.arguments) {
        drawn.arrays.push_back(inputs.draw(text.program.type(argument.value), sizes));
        drawn.words.push_back(to_words(drawn.arrays.back()));
    }
    return drawn;
}

void expect_interpreted(const KernelText &text, const Extent::Bindings &sizes, const KernelArguments &arguments,
                        const std::function<std::vector<Words>(std::vector<Words> &)> &run) {
    SCOPED_TRACE(describe_run(text, sizes));
    const std::vector<Array> expected = interpret_with_errors(text.program, arguments.arrays, {}, Mode::stored);
    std::vector<Words> words = arguments.words;
    const std::vector<Words> results = run(words);
    for (size_t r = 0; r < expected.size(); r++) {
        const Result &result = text.program.results[r];
        const Words &got = result.argument >= 0 ? words[size_t(result.argument)] : results[r];
        ASSERT_EQ(difference({expected[r].dtype, expected[r].shape, to_doubles(expected[r].dtype, got)}, expected[r]), "") << result.name;
    }
}

std::string describe_run(const KernelText &text, const Extent::Bindings &sizes) {
    std::string trace = text.program.name + ", seed " + std::to_string(seed);
    for (const auto &[name, size] : sizes) {
        trace += ", " + name + " = " + std::to_string(size);
    }
    return trace;
}

} // namespace scalide
