#include "frontend/initializers.h"
#include "rulebook/nearest.h"
#include <cmath>
#include <map>

namespace scalide::initializers {

namespace {

constexpr double deviation_of_truncated = 0.87962566103423978; ///< the standard deviation of a standard normal truncated to (-2, 2)

/// Distributions on an interval or line, by their operator: what a draw is multiplied by, for a given standard deviation.
struct Distribution {
    std::string op;
    Attributes attributes;
    double deviation; ///< of one draw
};

const std::map<std::string, Distribution> distributions{
    {"normal", {"normal", {}, 1}},
    {"truncated_normal", {"truncated_normal", {}, deviation_of_truncated}},
    {"uniform", {"uniform", {{"minval", -1.0}, {"maxval", 1.0}}, 1 / std::sqrt(3.0)}},
};

/// The weights of fan_in and fan_out in n.
const std::map<std::string, std::pair<double, double>> modes{{"fan_in", {1, 0}}, {"fan_out", {0, 1}}, {"fan_avg", {0.5, 0.5}}};

template<typename T>
const T &row_of(const std::map<std::string, T> &rows, const std::string &noun, const std::string &word) {
    if (const auto row = rows.find(word); row != rows.end()) return row->second;
    std::vector<std::string> words;
    for (const auto &[known, row] : rows) words.push_back(known);
    throw UserError(unknown_name({}, noun, word, suggestion(word, words)));
}

Initializer drawn(const std::string &op, double factor, Attributes attributes = {}) {
    return [=](const Tensor &key, const Type &type) {
        Attributes all = attributes;
        all["shape"] = to_attribute(type.shape);
        return apply("convert_element_type", {apply(op, {key}, all) * factor}, {{"dtype", std::string(to_string(type.dtype))}});
    };
}

double fan_of(const Type &type, const std::pair<double, double> &weights, int64_t batch_axes) {
    const int64_t rank = type.rank();
    if (batch_axes < 0 || rank - batch_axes < 2)
        throw UserError({{},
                         "variance_scaling",
                         "the state must have two axes besides the batch axes",
                         to_string(type) + " with " + std::to_string(batch_axes) + " batch axes",
                         "Use normal() or uniform()"});
    double others = 1;
    for (int64_t axis = 0; axis < rank; axis++) {
        const Extent &extent = type.shape[axis];
        if (!extent.is_static())
            throw UserError({{}, "variance_scaling", "the extents must be numbers", to_string(type), "Use a GeneratorParam as the extent"});
        if (axis >= batch_axes && axis < rank - 2) others *= static_cast<double>(extent.value());
    }
    const auto inputs = static_cast<double>(type.shape[rank - 2].value()), outputs = static_cast<double>(type.shape[rank - 1].value());
    return others * (weights.first * inputs + weights.second * outputs);
}

} // namespace

Initializer constant(double value) {
    return [=](const Tensor &, const Type &type) {
        return apply("full", {},
                     {{"shape", to_attribute(type.shape)}, {"fill_value", value}, {"dtype", std::string(to_string(type.dtype))}});
    };
}

Initializer zeros() { return constant(0); }
Initializer ones() { return constant(1); }
Initializer normal(double stddev) { return drawn("normal", stddev); }
Initializer truncated_normal(double stddev) { return drawn("truncated_normal", stddev); }
Initializer uniform(double scale) { return drawn("uniform", scale); }

Initializer variance_scaling(double scale, const std::string &mode, const std::string &distribution, int64_t batch_axes) {
    const auto weights = row_of(modes, "mode", mode);
    const Distribution &row = row_of(distributions, "distribution", distribution);
    return [=](const Tensor &key, const Type &type) {
        const double fan = fan_of(type, weights, batch_axes);
        return drawn(row.op, std::sqrt(scale / fan) / row.deviation, row.attributes)(key, type);
    };
}

Initializer lecun_normal(int64_t batch_axes) { return variance_scaling(1, "fan_in", "truncated_normal", batch_axes); }
Initializer lecun_uniform(int64_t batch_axes) { return variance_scaling(1, "fan_in", "uniform", batch_axes); }
Initializer he_normal(int64_t batch_axes) { return variance_scaling(2, "fan_in", "truncated_normal", batch_axes); }
Initializer he_uniform(int64_t batch_axes) { return variance_scaling(2, "fan_in", "uniform", batch_axes); }
Initializer glorot_normal(int64_t batch_axes) { return variance_scaling(1, "fan_avg", "truncated_normal", batch_axes); }
Initializer glorot_uniform(int64_t batch_axes) { return variance_scaling(1, "fan_avg", "uniform", batch_axes); }

} // namespace scalide::initializers
