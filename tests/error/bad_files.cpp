#include "interpret/laws.h"
#include "rulebook/check_policy.h"
#include "transforms/analysis/passes.h"
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace scalide;
namespace fs = std::filesystem;

namespace {

void load_rules(const std::string &yaml, const std::string &file) {
    Rulebook rulebook = Rulebook::load({SCALIDE_RULES_DIR});
    rulebook.add(yaml, file);
}

void load_one_policy(const std::string &yaml, const std::string &file) {
    check_policy(parse_policy(yaml, file, fs::path(SCALIDE_RULES_DIR) / "policies"), Rulebook::load({SCALIDE_RULES_DIR}));
}

/// Throws the first law that the rule of the file breaks.
void check_laws_of(const std::string &yaml, const std::string &file) {
    Rulebook rulebook = Rulebook::load({SCALIDE_RULES_DIR});
    rulebook.add(yaml, file);
    for (const Rule *rule : rulebook.rules()) {
        if (rule->location.file != file) continue;
        const std::vector<Message> failures = check_laws(*rule, rulebook, {propagate_scales, append_vjp}, {}).failures;
        if (!failures.empty()) throw UserError(failures[0]);
    }
}

/// Loads a file that must not load. Its first line is "# " and the exact message.
class BadFile : public testing::Test {
public:
    using Load = void (*)(const std::string &, const std::string &);
    BadFile(Load load, fs::path path) : load_(load), path_(std::move(path)) {}

    void TestBody() override {
        std::stringstream text;
        text << std::ifstream(path_).rdbuf();
        const std::string yaml = text.str();
        const std::string expected = yaml.substr(2, yaml.find('\n') - 2);
        try {
            load_(yaml, path_.filename().string());
            FAIL() << "nothing is wrong with it";
        } catch (const UserError &error) {
            EXPECT_EQ(error.what(), expected);
        }
    }

private:
    Load load_;
    fs::path path_;
};

void register_folder(const std::string &folder, BadFile::Load load) {
    std::vector<fs::path> paths;
    for (const auto &entry : fs::directory_iterator(fs::path(SCALIDE_ERROR_DIR) / folder)) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const fs::path &path : paths)
        testing::RegisterTest(folder.c_str(), path.stem().c_str(), nullptr, nullptr, __FILE__, __LINE__,
                              [=]() -> BadFile * { return new BadFile(load, path); });
}

} // namespace

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    register_folder("rule", load_rules);
    register_folder("policy", load_one_policy);
    register_folder("law", check_laws_of);
    return RUN_ALL_TESTS();
}
