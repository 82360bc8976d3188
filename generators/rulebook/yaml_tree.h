#pragma once
#include <memory>
#include <string>
#include <vector>

namespace scalide {

/// One value of a YAML text as the parser saw it: made in one pass, several times faster than the library's own nodes.
struct YamlTree {
    enum class Kind { nothing, text, list, map } kind = Kind::nothing;
    std::string text;
    bool is_quoted = false;
    int line = 0, column = 0;                           ///< from 1
    std::vector<std::shared_ptr<const YamlTree>> items; ///< of a list; of a map: key, value, key, value ...
};

/// The documents of a text that are not empty. Syntax errors, anchors and aliases throw UserError.
std::vector<std::shared_ptr<const YamlTree>> parse_yaml_trees(const std::string &yaml, const std::string &file);

} // namespace scalide
