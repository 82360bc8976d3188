#pragma once
#include <memory>
#include <string>
#include <vector>

namespace scalide {

/// One value of a YAML text. The tree is built in one pass of the parser, which is several times faster than the nodes of the YAML library.
struct YamlTree {
    enum class Kind { nothing, text, list, map } kind = Kind::nothing;
    std::string text;
    bool is_quoted = false;
    int line = 0, column = 0;                           ///< from 1
    std::vector<std::shared_ptr<const YamlTree>> items; ///< elements of a list; for a map: key, value, key, value ...
};

/// Returns the documents of a text that are not empty. Throws UserError for syntax errors, anchors and aliases.
std::vector<std::shared_ptr<const YamlTree>> parse_yaml_trees(const std::string &yaml, const std::string &file);

} // namespace scalide
