#include "expr/base_operators.h"
#include "rulebook/attribute_types.h"
#include "rulebook/check_policy.h"
#include "rulebook/intrinsics.h"
#include "rulebook/static_value.h"
#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace scalide;

namespace {

const std::string reference = SCALIDE_RULES_DIR "/../docs/reference/";

std::string page(const std::string &name) {
    std::stringstream text;
    text << std::ifstream(reference + name).rdbuf();
    return text.str();
}

/// The rows of all tables under a heading and under the headings below it, sorted, without the two head lines of each table.
std::vector<std::string> tables_under(const std::string &name, const std::string &heading) {
    std::istringstream lines(page(name));
    std::vector<std::string> rows;
    size_t level = 0; // of the heading; 0: outside
    int row = 0;
    for (std::string line; std::getline(lines, line);) {
        const size_t own = line.starts_with("#") ? line.find_first_not_of('#') : 0;
        if (own > 0 && (level == 0 || own <= level)) level = line.substr(own) == " " + heading ? own : 0;
        row = line.starts_with("|") ? row + 1 : 0;
        if (level > 0 && row > 2) rows.push_back(line);
    }
    std::ranges::sort(rows);
    return rows;
}

std::string row(std::string_view code, std::string_view text) { return "| `" + std::string(code) + "` | " + std::string(text) + " |"; }

std::vector<std::string> sorted(std::vector<std::string> rows) {
    std::ranges::sort(rows);
    return rows;
}

} // namespace

TEST(rulebook, reference_has_the_shape_functions) {
    std::vector<std::string> rows;
    for (const ShapeFunction &function : shape_functions()) rows.push_back(row(function.signature, function.text));
    EXPECT_EQ(tables_under("rules.md", "Shape functions"), sorted(rows));
}

TEST(rulebook, reference_has_the_intrinsics) {
    std::vector<std::string> rows;
    for (const Intrinsic &intrinsic : intrinsics()) rows.push_back(row(intrinsic.signature, intrinsic.text));
    EXPECT_EQ(tables_under("rules.md", "Functions of arrays and scales"), sorted(rows));
}

TEST(rulebook, reference_has_the_attribute_types) {
    std::vector<std::string> rows;
    for (const std::string &type : attribute_type_names()) rows.push_back(row(type, attribute_type_text(type)));
    EXPECT_EQ(tables_under("rules.md", "Attribute types"), sorted(rows));
}

TEST(rulebook, reference_has_the_shapes_of_base_operators) {
    std::vector<std::string> rows;
    for (const ShapeWords &shape : shape_words()) rows.push_back(row(shape.name, shape.text));
    EXPECT_EQ(tables_under("rules.md", "Base operators"), sorted(rows));
}

TEST(rulebook, reference_has_the_roles_of_policies) {
    using Place = PolicyRule::Place;
    std::string roles;
    for (const std::string &line : tables_under("policies.md", "Roles")) roles += line.substr(0, line.find('|', 1)) + "\n";
    for (const Place place : {Place::argument, Place::operand, Place::node, Place::program_result, Place::node_result})
        for (const std::string &word : place_words(place)) EXPECT_NE(roles.find("`" + word + "`"), std::string::npos) << word;
}

TEST(rulebook, reference_has_policies) {
    const std::string text = page("policies.md"), fence = "```";
    const Rulebook rulebook = Rulebook::load({SCALIDE_RULES_DIR});
    int count = 0;
    for (size_t begin = text.find("\npolicy:"); begin != std::string::npos; begin = text.find("\npolicy:", begin + 1), count++) {
        const std::string yaml = text.substr(begin, text.find(fence, begin) - begin);
        check_policy(parse_policy(yaml, "policies.md", SCALIDE_RULES_DIR "/policies"), rulebook);
    }
    EXPECT_GT(count, 4);
}
