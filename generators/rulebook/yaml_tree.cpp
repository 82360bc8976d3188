#include "rulebook/yaml_tree.h"
#include "expr/error.h"
#include <sstream>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace scalide {

namespace {

Location location_of(const std::string &file, const YAML::Mark &mark) {
    return mark.is_null() ? Location{file} : Location{file, mark.line + 1};
}

using Tree = std::shared_ptr<YamlTree>;

/// Rejects YAML that is unsafe to read. With anchors and aliases, a value could contain itself. The library reads a stray comma between
/// documents as an endless sequence of empty documents.
class TreeBuilder : public YAML::EventHandler {
public:
    explicit TreeBuilder(const std::string &file) : file_(file) {}
    std::vector<std::shared_ptr<const YamlTree>> take() { return std::move(documents_); }

    void OnDocumentStart(const YAML::Mark &mark) override {
        if (mark.pos == last_start_) throw UserError({location_of(file_, mark), "yaml", "expected a value here", "", ""});
        last_start_ = mark.pos;
    }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark &mark, YAML::anchor_t anchor) override { add(YamlTree::Kind::nothing, mark, anchor); }
    void OnAlias(const YAML::Mark &mark, YAML::anchor_t anchor) override { refuse(mark, anchor); }
    void OnScalar(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor, const std::string &text) override {
        const Tree tree = add(YamlTree::Kind::text, mark, anchor);
        tree->text = text;
        tree->is_quoted = tag == "!";
    }
    void OnSequenceStart(const YAML::Mark &mark, const std::string &, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
        open_.push_back(add(YamlTree::Kind::list, mark, anchor));
    }
    void OnSequenceEnd() override { open_.pop_back(); }
    void OnMapStart(const YAML::Mark &mark, const std::string &, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
        open_.push_back(add(YamlTree::Kind::map, mark, anchor));
    }
    void OnMapEnd() override { open_.pop_back(); }

private:
    Tree add(YamlTree::Kind kind, const YAML::Mark &mark, YAML::anchor_t anchor) {
        refuse(mark, anchor);
        Tree tree = std::make_shared<YamlTree>();
        tree->kind = kind;
        tree->line = mark.line + 1;
        tree->column = mark.column + 1;
        if (!open_.empty()) {
            open_.back()->items.push_back(tree);
        } else if (kind != YamlTree::Kind::nothing) {
            documents_.push_back(tree);
        }
        return tree;
    }

    void refuse(const YAML::Mark &mark, YAML::anchor_t anchor) const {
        if (anchor != 0) throw UserError({location_of(file_, mark), "yaml", "anchors and aliases (& and *) are not supported", "", ""});
    }

    const std::string &file_;
    std::vector<std::shared_ptr<const YamlTree>> documents_;
    std::vector<Tree> open_; ///< lists and maps around the next value, outermost first
    int last_start_ = -1;
};

} // namespace

std::vector<std::shared_ptr<const YamlTree>> parse_yaml_trees(const std::string &yaml, const std::string &file) {
    try {
        std::istringstream stream(yaml);
        YAML::Parser parser(stream);
        TreeBuilder builder(file);
        while (parser.HandleNextDocument(builder)) {
        }
        return builder.take();
    } catch (const YAML::Exception &error) {
        throw UserError({location_of(file, error.mark), "yaml", error.msg, "", ""});
    }
}

} // namespace scalide
