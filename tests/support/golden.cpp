#include "support/golden.h"
#include <fstream>

namespace scalide::test {

namespace {

std::filesystem::path folder_of(const std::string &suite) {
    const std::filesystem::path shared = SCALIDE_SHARED_DIR, whole = shared / "golden";
    const bool use_whole = !shared.empty() && std::filesystem::exists(whole / (suite + ".json"));
    return use_whole ? whole : std::filesystem::path(SCALIDE_TESTS_DIR) / "golden/data";
}

template<typename T, typename Out>
std::vector<Out> widen(const NpyArray &array) {
    std::span<const T> elements = array.as<T>();
    return {elements.begin(), elements.end()};
}

// NumPy's type words (little endian, without the first character).
template<typename Out>
std::vector<Out> widen(const NpyArray &array) {
    using Widen = std::vector<Out> (*)(const NpyArray &);
    static const std::map<std::string, Widen> by_type{
        {"f4", widen<float, Out>},    {"f8", widen<double, Out>},   {"b1", widen<uint8_t, Out>},  {"u1", widen<uint8_t, Out>},
        {"u2", widen<uint16_t, Out>}, {"f2", widen<uint16_t, Out>}, {"u4", widen<uint32_t, Out>}, {"u8", widen<uint64_t, Out>},
        {"i1", widen<int8_t, Out>},   {"i2", widen<int16_t, Out>},  {"i4", widen<int32_t, Out>},  {"i8", widen<int64_t, Out>}};
    auto found = by_type.find(array.descr.substr(1));
    if (found == by_type.end()) throw std::runtime_error("npz: elements are " + array.descr);
    return found->second(array);
}

/// A complex array is a real one with a last axis of extent 2.
void make_real(nlohmann::json &entry) {
    static const std::map<std::string, std::string> real{{"c64", "f32"}, {"c128", "f64"}};
    if (!entry.is_structured()) return;
    const bool is_complex = entry.is_object() && entry.contains("shape") && entry.contains("key") && real.contains(entry["dtype"]);
    if (is_complex) {
        entry["dtype"] = real.at(entry["dtype"]);
        entry["shape"].push_back(2);
    }
    for (nlohmann::json &part : entry) make_real(part);
}

} // namespace

GoldenSuite load_golden(const std::string &suite) {
    const std::filesystem::path folder = folder_of(suite);
    std::ifstream index(folder / (suite + ".json"));
    GoldenSuite golden{nlohmann::json::parse(index), Npz(folder / (suite + ".npz"))};
    make_real(golden.index["cases"]);
    return golden;
}

std::vector<double> to_doubles(const NpyArray &array, Dtype dtype) {
    std::vector<double> values = widen<double>(array);
    if (!is_float(dtype) || size_of(dtype) > 2) return values;
    const FormatSpec &format = format_of(dtype);
    for (double &value : values) value = decode(format, static_cast<uint32_t>(value));
    return values;
}

std::vector<uint32_t> to_words(const NpyArray &array) {
    NpyArray words = array;
    if (words.descr == "<f4") words.descr = "<u4";
    return widen<uint32_t>(words);
}

} // namespace scalide::test
