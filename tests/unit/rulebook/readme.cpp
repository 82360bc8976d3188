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

/// The lines of the table under a heading of rules/README.md, without its two head lines.
std::vector<std::string> table_under(const std::string &heading) {
    std::ifstream readme(SCALIDE_RULES_DIR "/README.md");
    std::vector<std::string> rows;
    bool inside = false;
    for (std::string line; std::getline(readme, line);) {
        if (line.starts_with("#"))
            inside = line.ends_with(heading);
        else if (inside && line.starts_with("|"))
            rows.push_back(line);
    }
    rows.erase(rows.begin(), rows.begin() + std::min<size_t>(2, rows.size()));
    return rows;
}

std::string row(std::string_view code, std::string_view text) { return "| `" + std::string(code) + "` | " + std::string(text) + " |"; }

} // namespace

TEST(rulebook, readme_has_the_shape_functions) {
    std::vector<std::string> rows;
    for (const ShapeFunction &function : shape_functions()) rows.push_back(row(function.signature, function.text));
    EXPECT_EQ(table_under("Shape functions"), rows);
}

TEST(rulebook, readme_has_the_intrinsics) {
    std::vector<std::string> rows;
    for (const Intrinsic &intrinsic : intrinsics()) rows.push_back(row(intrinsic.signature, intrinsic.text));
    EXPECT_EQ(table_under("Intrinsics"), rows);
}

TEST(rulebook, readme_has_the_attribute_types) {
    std::vector<std::string> rows;
    for (const std::string &type : attribute_type_names()) rows.push_back(row(type, attribute_type_text(type)));
    EXPECT_EQ(table_under("Attribute types"), rows);
}

TEST(rulebook, readme_has_the_shapes_of_base_operators) {
    std::vector<std::string> rows;
    for (const ShapeWords &shape : shape_words()) rows.push_back(row(shape.name, shape.text));
    EXPECT_EQ(table_under("Base operators"), rows);
}

TEST(rulebook, readme_has_the_words_of_policies) {
    using Place = PolicyRule::Place;
    const std::vector<std::string> rows = table_under("Policies");
    const std::vector<Place> places = {Place::argument, Place::operand, Place::node, Place::program_result, Place::node_result};
    ASSERT_EQ(rows.size(), places.size());
    for (size_t i = 0; i < places.size(); i++)
        for (const std::string &word : place_words(places[i])) EXPECT_NE(rows[i].find(word), std::string::npos) << word << ": " << rows[i];
}

TEST(rulebook, readme_has_a_policy) {
    std::stringstream text;
    text << std::ifstream(SCALIDE_RULES_DIR "/README.md").rdbuf();
    const std::string start = "```yaml\npolicy:", readme = text.str();
    const size_t begin = readme.find(start) + start.size() - std::string("policy:").size(), end = readme.find("```", begin);
    const Policy policy = parse_policy(readme.substr(begin, end - begin), "README.md", SCALIDE_RULES_DIR "/policies");
    check_policy(policy, Rulebook::load({SCALIDE_RULES_DIR}));
    EXPECT_GT(policy.rules.size(), 2);
}
