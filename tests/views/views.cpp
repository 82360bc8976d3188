// Generated programs on crops and on arrays with steps give the bits of dense arrays, and write nothing around them.
#include "batches.h"
#include "half.h"
#include "matmul.h"
#include "reuse.h"
#include "rows.h"
#include "weights.h"
#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <scalide/scalide.hpp>

namespace {

using namespace scalide::runtime;

constexpr unsigned char around = 0x3b;

/// An array inside of a larger one.
struct Inner {
    Array whole, view;
};

/// Which elements of a larger array a view has.
struct Choice {
    Shape steps;               ///< by axis, the last axis first; 1 for other axes
    size_t cropped = SIZE_MAX; ///< number of axes, from the last one on, that are longer in the larger array
};

Inner place(const Context &context, int32_t dtype, const Shape &shape, const Choice &choice) {
    Shape whole, begin, steps;
    for (size_t axis = 0; axis < shape.size(); axis++) {
        const size_t from_last = shape.size() - 1 - axis;
        steps.push_back(from_last < choice.steps.size() ? choice.steps[from_last] : 1);
        begin.push_back(from_last < choice.cropped ? 2 : 0);
        whole.push_back(shape[axis] * steps[axis] + (from_last < choice.cropped ? 3 : 0));
    }
    Inner inner{Array(context, dtype, whole), {}};
    std::memset(inner.whole.descriptor().data, around, inner.whole.bytes());
    inner.view = inner.whole.crop(begin, shape, steps);
    return inner;
}

std::vector<unsigned char> bits_of(const Array &array) {
    const Array host = array.host();
    const auto *data = static_cast<const unsigned char *>(host.descriptor().data);
    return std::vector<unsigned char>(data, data + host.bytes());
}

/// Sets the elements of the view to 0x3b... and then looks for other bytes.
bool is_clean_around(const Inner &inner) {
    Array filler(Context(1), inner.view.dtype(), inner.view.shape());
    std::memset(filler.descriptor().data, around, filler.bytes());
    Array(inner.view).set_bits(filler.descriptor());
    const std::vector<unsigned char> bits = bits_of(inner.whole);
    return std::all_of(bits.begin(), bits.end(), [](unsigned char byte) { return byte == around; });
}

class Comparison {
public:
    Comparison(const Program &program, const Symbols &symbols) : program_(program), shapes_(program.shapes(context_, symbols)) {
        std::mt19937 random(7);
        std::normal_distribution<float> normal;
        for (size_t i = 0; i < shapes_.size(); i++) {
            Array array(context_, program.arguments()[i].dtype, shapes_[i]);
            std::vector<float> values(array.size());
            for (float &value : values) value = normal(random);
            array.set(values);
            start_.emplace(program.arguments()[i].name, array);
        }
        NamedArrays arrays;
        for (const auto &named : start_) arrays.emplace(named.first, copy(named.second));
        Binding binding(context_, program_, arrays);
        for (int run = 0; run < 2; run++) binding.run();
        dense_ = binding_results(arrays);
    }

    /// Runs with views for the arguments for which `is_view` is true. Returns the copied bytes by argument.
    std::map<std::string, size_t> run(const Choice &choice, const std::function<bool(const Argument &)> &is_view) {
        std::map<std::string, Inner> inners;
        NamedArrays arrays = arrays_with(choice, is_view, inners);
        Binding binding(context_, program_, arrays);
        for (int run = 0; run < 2; run++) binding.run();
        EXPECT_EQ(binding_results(arrays), dense_) << program_.name();
        std::map<std::string, size_t> bytes;
        for (const Argument &argument : program_.arguments()) bytes[argument.name] = binding.copied_bytes(argument.name);
        check_further(binding, choice, is_view);
        for (const auto &named : inners) EXPECT_TRUE(is_clean_around(named.second)) << program_.name() << "." << named.first;
        return bytes;
    }

private:
    Array copy(const Array &array) const {
        Array result(context_, array.dtype(), array.shape());
        result.set_bits(array.host().descriptor());
        return result;
    }
    NamedArrays arrays_with(const Choice &choice, const std::function<bool(const Argument &)> &is_view,
                            std::map<std::string, Inner> &inners) {
        NamedArrays arrays;
        for (size_t i = 0; i < shapes_.size(); i++) {
            const Argument &argument = program_.arguments()[i];
            Array array = copy(start_.at(argument.name));
            if (is_view(argument)) {
                const Inner inner = inners[argument.name] = place(context_, argument.dtype, shapes_[i], choice);
                Array(inner.view).set_bits(array.descriptor());
                array = inner.view;
            }
            arrays.emplace(argument.name, array);
        }
        return arrays;
    }
    /// A binding made from another one, for other views.
    void check_further(const Binding &binding, const Choice &choice, const std::function<bool(const Argument &)> &is_view) {
        std::map<std::string, Inner> inners;
        Choice other = choice;
        if (!other.steps.empty()) other.steps[0]++;
        NamedArrays arrays = arrays_with(other, is_view, inners);
        Binding further = binding.clone(context_, arrays);
        std::vector<char> memory(further.arena_bytes() + 64);
        void *arena = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
        further.set_arena(arena, further.arena_bytes());
        for (int run = 0; run < 2; run++) further.run();
        EXPECT_EQ(binding_results(arrays), dense_) << program_.name();
    }
    std::map<std::string, std::vector<unsigned char>> binding_results(const NamedArrays &arrays) const {
        std::map<std::string, std::vector<unsigned char>> results;
        for (const auto &named : arrays) results[named.first] = bits_of(named.second);
        return results;
    }

    Context context_{2};
    Program program_;
    std::vector<Shape> shapes_;
    NamedArrays start_;
    std::map<std::string, std::vector<unsigned char>> dense_;
};

bool is_any(const Argument &) { return true; }
bool is_read(const Argument &argument) { return argument.role == SCALIDE_INPUT; }
bool is_written(const Argument &argument) { return argument.role == SCALIDE_OUTPUT; }

size_t sum(const std::map<std::string, size_t> &bytes) {
    size_t sum = 0;
    for (const auto &named : bytes) sum += named.second;
    return sum;
}

const Choice crop = {}, crop_of_columns = {{}, 1}, step_of_columns = {{2}}, step_of_rows = {{1, 3}};

void compare(const Program &program, const Symbols &symbols) {
    Comparison comparison(program, symbols);
    // A block of one row is dense, so an inout would have to be aligned.
    const auto is_strided = [&](const Argument &argument) { return !argument.is_kept() || symbols.at("b") > 1; };
    for (const Choice &choice : {crop, crop_of_columns, step_of_columns, step_of_rows}) {
        comparison.run(choice, is_strided);
        comparison.run(choice, is_read);
        comparison.run(choice, is_written);
    }
}

} // namespace

TEST(values, are_those_of_dense_arrays) {
    for (int64_t b : {1, 2, 5, 64}) {
        compare(matmul_program(), {{"b", b}});
        compare(rows_program(), {{"b", b}});
        compare(reuse_program(), {{"b", b}});
        compare(batches_program(), {{"b", b}});
        compare(weights_program(), {{"b", b}});
        compare(half_program(), {{"b", b}});
    }
}

TEST(values, of_empty_arrays_are_those_of_dense_arrays) {
    for (const Program program : {matmul_program(), rows_program(), reuse_program(), weights_program(), half_program()})
        compare(program, {{"b", 0}});
}

TEST(copies, are_not_needed_for_rows_of_matmuls) {
    Comparison matmul(matmul_program(), {{"b", 64}});
    EXPECT_EQ(sum(matmul.run(crop, [](const Argument &argument) { return argument.name != "bias"; })), 0u);
    EXPECT_EQ(sum(matmul.run(step_of_rows, [](const Argument &argument) { return argument.name != "bias"; })), 0u);
    EXPECT_EQ(matmul.run(step_of_columns, is_read).at("x"), 64 * 33 * sizeof(float));
    Comparison batches(batches_program(), {{"b", 3}});
    EXPECT_EQ(sum(batches.run(crop_of_columns, is_read)), 0u);
    EXPECT_GT(sum(batches.run(crop, is_read)), 0u) << "the kernel sees the two axes of batches as one";
}

TEST(copies, are_not_needed_for_reductions_of_rows) {
    Comparison rows(rows_program(), {{"b", 64}});
    EXPECT_EQ(sum(rows.run(crop, is_any)), 0u);
}

TEST(copies, are_needed_if_one_kernel_reads_no_strides) {
    Comparison reuse(reuse_program(), {{"b", 64}});
    const std::map<std::string, size_t> bytes = reuse.run(crop, is_any);
    EXPECT_EQ(bytes.at("x"), 64 * 16 * sizeof(float));
    EXPECT_EQ(bytes.at("w"), 0u);
    EXPECT_EQ(bytes.at("y"), 0u);
    EXPECT_EQ(bytes.at("z"), 64 * 16 * sizeof(float));
}

TEST(copies, of_inouts_are_two_and_of_constants_none) {
    Comparison weights(weights_program(), {{"b", 64}});
    const std::map<std::string, size_t> bytes = weights.run(crop, is_any);
    EXPECT_EQ(bytes.at("h"), 2 * 64 * 24 * sizeof(float));
    EXPECT_EQ(bytes.at("w"), 0u);
}
