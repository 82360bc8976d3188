#pragma once
#include "interpret/interpret.h"
#include "ir/text.h"

namespace scalide {

/// Interprets a program text. Base operators need no rule; pass a rulebook for the others.
inline std::vector<Array> run(const std::string &text, const std::vector<Array> &inputs, Mode mode = Mode::stored,
                              const Rulebook &rulebook = {}) {
    return interpret(parse_program(text, "test.scl"), inputs, rulebook, mode);
}

/// Returns the data of the only result.
inline std::vector<double> run_one(const std::string &text, const std::vector<Array> &inputs = {}, Mode mode = Mode::stored) {
    return run(text, inputs, mode).at(0).data;
}

inline Array f32_array(std::vector<int64_t> shape, std::vector<double> data) { return {Dtype::f32, std::move(shape), std::move(data)}; }
inline Array i32_array(std::vector<int64_t> shape, std::vector<double> data) { return {Dtype::i32, std::move(shape), std::move(data)}; }

} // namespace scalide
