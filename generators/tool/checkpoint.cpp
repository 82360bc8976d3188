#include "tool/checkpoint.h"
#include "emit/files.h"
#include "ir/words.h"
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

namespace scalide {

namespace {

constexpr int64_t block_extent = 128; ///< of published scales of blocks
constexpr const char *scale_suffixes[] = {"_scale", "_scale_inv"};

/// Returns tensor -> file.
std::map<std::string, std::string> tensors_of_index(const std::string &path) {
    using Json = nlohmann::json;
    const Json index = Json::parse(read_file(path), nullptr, false);
    const bool is_index = index.is_object() && index.contains("weight_map") && index["weight_map"].is_object();
    if (!is_index)
        throw UserError({{path}, "index", "must be a JSON object with the key 'weight_map'", "another text", "Use a safetensors file"});
    std::map<std::string, std::string> tensors;
    for (const auto &[name, file] : index["weight_map"].items()) {
        if (!file.is_string()) throw UserError({{path}, name, "must be the name of a file", file.dump(), ""});
        tensors[name] = (std::filesystem::path(path).parent_path() / file.get<std::string>()).string();
    }
    return tensors;
}

/// Returns the name of the scaled array if this is one of its two tensors.
std::optional<std::string> array_of_part(const std::string &name, const std::map<std::string, std::string> &tensors) {
    for (const auto &[data, scale] : part_suffixes) {
        for (const std::string end : {data, scale}) {
            if (!name.ends_with(end)) continue;
            const std::string array = name.substr(0, name.size() - end.size());
            if (tensors.contains(array + data) && tensors.contains(array + scale)) return array;
        }
    }
    return {};
}

/// Returns the extent of a block along each axis of an array.
std::vector<int64_t> blocks_of(const HostArray &array, const HostArray &scales) {
    std::vector<int64_t> blocks;
    for (size_t i = 0; i < scales.shape.size() && scales.shape.size() == array.shape.size(); i++) {
        const int64_t extent = array.shape[i], count = scales.shape[i];
        if (count == 1) {
            blocks.push_back(extent);
        } else if (count == extent) {
            blocks.push_back(1);
        } else if (count == (extent + block_extent - 1) / block_extent) {
            blocks.push_back(block_extent);
        }
    }
    if (blocks.size() == array.shape.size()) return blocks;
    throw UserError({{},
                     scales.name,
                     "must have one scale for " + array.name + ", one for each row or column, or one for each block of 128 x 128",
                     "scales of shape " + to_string(Extents(scales.shape.begin(), scales.shape.end())) + " for shape " +
                         to_string(Extents(array.shape.begin(), array.shape.end())),
                     ""});
}

/// Returns the f32 values of an array with published scales.
HostArray multiplied(const HostArray &array, const HostArray &scales) {
    Array values = to_tensor(array);
    const std::vector<double> factors = to_tensor(scales).data;
    const std::vector<int64_t> blocks = blocks_of(array, scales);
    for (size_t i = 0; i < values.data.size(); i++) {
        int64_t rest = static_cast<int64_t>(i), place = 0, stride = 1;
        for (size_t axis = blocks.size(); axis-- > 0; stride *= scales.shape[axis], rest /= array.shape[axis])
            place += rest % array.shape[axis] / blocks[axis] * stride;
        values.data[i] = static_cast<float>(values.data[i] * factors[place]);
    }
    values.dtype = Dtype::f32;
    return to_array(array.name, values);
}

} // namespace

Checkpoint::Checkpoint(const std::string &path) {
    std::map<std::string, std::string> tensors;
    if (path.ends_with(".json")) {
        tensors = tensors_of_index(path);
    } else {
        for (const std::string &name : open(path).tensors()) tensors[name] = path;
    }
    for (const auto &[name, file] : tensors) entries_[array_of_part(name, tensors).value_or(name)].file = file;
    for (const auto &[name, file] : tensors) {
        for (const std::string suffix : scale_suffixes) {
            const auto array = name.ends_with(suffix) ? entries_.find(name.substr(0, name.size() - suffix.size())) : entries_.end();
            if (array == entries_.end()) continue;
            array->second.scales = name;
            array->second.scales_file = file;
            entries_.erase(name);
        }
    }
}

std::vector<std::string> Checkpoint::names() const {
    std::vector<std::string> names;
    for (const auto &[name, entry] : entries_) names.push_back(name);
    return names;
}

const ArrayFile &Checkpoint::open(const std::string &file) { return files_.try_emplace(file, file).first->second; }

HostArray Checkpoint::find(const std::string &name) {
    const Entry &entry = entries_.at(name);
    HostArray array = open(entry.file).find(name);
    if (entry.scales.empty()) return array;
    const HostArray scales = open(entry.scales_file).find(entry.scales);
    if (scales.data.size() / size_of(scales.dtype) != 1) return multiplied(array, scales);
    array.scaled = true;
    array.scale = static_cast<float>(to_tensor(scales).data[0]);
    return array;
}

} // namespace scalide
