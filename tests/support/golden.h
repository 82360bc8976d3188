#pragma once
#include "ir/dtype.h"
#include "support/npz.h"
#include <nlohmann/json.hpp>

namespace scalide::test {

/// A golden suite: the index (`<suite>.json`) and the arrays (`<suite>.npz`). See the README beside them.
struct GoldenSuite {
    nlohmann::json index;
    Npz arrays;
};

/// Loads a suite. It reads the full suite from the golden folder of SCALIDE_SHARED_DIR if that exists, and otherwise the part in
/// tests/golden/data.
GoldenSuite load_golden(const std::string &suite);

/// Returns the elements of an array as f64. Floats of less than 32 bits may be stored as integers of their size.
std::vector<double> to_doubles(const NpyArray &array, Dtype dtype);
/// The elements of an array as raw words of 8, 16 or 32 bits.
std::vector<uint32_t> to_words(const NpyArray &array);

} // namespace scalide::test
