#include "rulebook/policy.h"
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sstream>

using namespace scalide;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> texts_below(const std::string &folder) {
    std::vector<fs::path> paths;
    for (const auto &entry : fs::recursive_directory_iterator(folder))
        if (entry.path().extension() == ".yaml") paths.push_back(entry.path());
    std::ranges::sort(paths);
    std::vector<std::string> texts;
    for (const fs::path &path : paths) {
        std::stringstream text;
        text << std::ifstream(path).rdbuf();
        texts.push_back(text.str());
    }
    return texts;
}

/// A few bytes changed, lost, doubled or moved.
std::string mutated(std::string text, std::mt19937 &random) {
    const std::string signs = "{}[]:,-&*!|>'\"#%@`()\n \t.0aex\xff";
    for (size_t edits = 1 + random() % 4; edits > 0 && !text.empty(); edits--) {
        const size_t at = random() % text.size(), length = random() % std::min<size_t>(text.size() - at, 20);
        switch (random() % 4) {
        case 0: text[at] = signs[random() % signs.size()]; break;
        case 1: text.erase(at, 1 + length); break;
        case 2: text.insert(random() % text.size(), text.substr(at, length)); break;
        default: text.insert(at, 1, signs[random() % signs.size()]); break;
        }
    }
    return text;
}

/// Loads mutations of `texts`; a mistake must be a UserError with a place.
template<typename Load>
void load_mutations(const std::vector<std::string> &texts, const Load &load) {
    const unsigned seed = std::random_device()();
    std::mt19937 random(seed);
    ASSERT_FALSE(texts.empty());
    for (int i = 0; i < 600; i++) {
        const std::string text = mutated(texts[random() % texts.size()], random);
        try {
            load(text);
        } catch (const UserError &error) {
            EXPECT_TRUE(std::string(error.what()).starts_with("m.yaml")) << "seed " << seed << ": " << error.what();
        } catch (const std::exception &error) {
            FAIL() << "seed " << seed << ": " << error.what() << " from:\n" << text;
        }
    }
}

} // namespace

TEST(rulebook, mutated_rules_load_or_are_refused) {
    const Rulebook ours = Rulebook::load({SCALIDE_RULES_DIR});
    std::vector<std::string> texts = texts_below(std::string(SCALIDE_RULES_DIR) + "/elementwise");
    // under their own names, next to the operators that they use
    for (std::string &text : texts)
        for (size_t at = text.find("op: "); at != std::string::npos; at = text.find("\nop: ", at + 6))
            text.insert(text.find("op: ", at) + 4, "z");
    load_mutations(texts, [&](const std::string &text) {
        Rulebook rulebook = ours;
        rulebook.add(text, "m.yaml");
    });
}

TEST(rulebook, mutated_policies_load_or_are_refused) {
    load_mutations(texts_below(std::string(SCALIDE_RULES_DIR) + "/policies"),
                   [](const std::string &text) { parse_policy(text, "m.yaml"); });
}
