#include "ir/named_program.h"
#include "ir/parse_parts.h"
#include "ir/text.h"
#include "ir/words.h"

#include <algorithm>

namespace scalide {

namespace {

constexpr size_t longest_text = size_t(64) << 20;
constexpr size_t most_nodes = 1000000;
constexpr size_t longest_scope = 1000;

/// A name and its location.
struct PlacedName {
    Token token;
    std::string name;
};

/// The type of one result of a node, as written after the colon.
struct DeclaredType {
    Type type;
    ArrayPart part = {};
};

// `name: type scaled = value`, `name: type data of x = value` or `argument = value`. It is resolved after the body has been parsed.
struct DeclaredResult {
    PlacedName name, value;
    Result result = {};
    Type type = {};
};

// Parses one `program name {..} [..] (..) -> (..) { .. }`, with its regions `name(..) -> (..) { .. }`.
class ProgramParser {
public:
    explicit ProgramParser(Lexer &lexer) : lexer_(lexer) {}
    Program parse();

private:
    // A region of a node of `outer`, inside of `depth` scopes and regions.
    ProgramParser(const ProgramParser &outer, int depth)
        : lexer_(outer.lexer_), symbols_(outer.symbols_), node_count_(outer.node_count_), depth_(depth), is_region_(true) {}
    Program parse_region();
    void parse_results_and_body();
    void parse_symbol();
    void parse_source(Symbol &symbol, bool is_bounded);
    ArrayPart parse_part();
    void parse_argument();
    void parse_result();
    void parse_body(const std::string &scope, int depth);
    void parse_scope(const std::string &outer, int depth);
    void parse_node(const std::string &scope, int depth);
    std::vector<Region> parse_regions(int depth);
    NamedOperand parse_operand();
    std::vector<DeclaredType> parse_types(size_t count);
    PlacedName parse_placed(const std::string &subject) { return {lexer_.peek(), parse_name(lexer_, subject)}; }

    void check_count(size_t more) const;
    ValueId find(const PlacedName &name, const std::string &subject) const;
    void check_fresh(const PlacedName &name, const std::string &subject) const;
    int find_argument(const PlacedName &name) const;
    void add_result(const DeclaredResult &declared);

    Lexer &lexer_;
    NamedProgram named_;
    Program &program_ = named_.program;
    std::set<std::string> symbols_;
    std::vector<DeclaredResult> results_;
    std::shared_ptr<size_t> node_count_ = std::make_shared<size_t>(0); // of finished regions, too
    int depth_ = 0;
    bool is_region_ = false;
};

Program ProgramParser::parse() {
    lexer_.expect("program", "program");
    program_.name = parse_name(lexer_, "program");
    Lexer attributes = lexer_;
    if (lexer_.is("{")) parse_attributes(lexer_, {});
    if (lexer_.is("[")) lexer_.sequence("[", "]", "program.symbols", [&] { parse_symbol(); });
    lexer_.sequence("(", ")", "program.arguments", [&] { parse_argument(); });
    declare_symbols(program_);
    for (const Symbol &symbol : program_.symbols) symbols_.insert(symbol.name);
    // Parses the attributes again, because symbols and words can be distinguished only now.
    if (attributes.is("{")) program_.attributes = parse_attributes(attributes, symbols_);
    parse_results_and_body();
    return std::move(program_);
}

Program ProgramParser::parse_region() {
    program_.name = parse_name(lexer_, "region");
    lexer_.sequence("(", ")", "region.arguments", [&] { parse_argument(); });
    parse_results_and_body();
    return std::move(program_);
}

void ProgramParser::parse_results_and_body() {
    const std::string subject = is_region_ ? "region" : "program";
    lexer_.expect("->", subject);
    lexer_.sequence("(", ")", subject + ".results", [&] { parse_result(); });
    lexer_.expect("{", subject);
    parse_body("", depth_);
    lexer_.expect("}", subject);
    for (const DeclaredResult &declared : results_) add_result(declared);
    named_.name_constants();
}

void ProgramParser::parse_symbol() {
    const Token token = lexer_.peek();
    Symbol symbol{parse_plain_name(lexer_, "symbol")};
    if (!symbols_.insert(symbol.name).second) lexer_.fail(token, "symbol", "the name must be unique");
    const bool is_bounded = lexer_.accept("in");
    if (is_bounded) {
        symbol.minimum = parse_integer(lexer_);
        lexer_.expect("..", "symbol");
        symbol.maximum = parse_integer(lexer_);
    }
    if (lexer_.accept("step")) symbol.multiple = parse_integer(lexer_);
    if (lexer_.accept("likely")) lexer_.sequence("[", "]", "symbol", [&] { symbol.likely.push_back(parse_integer(lexer_)); });
    parse_source(symbol, is_bounded);
    program_.symbols.push_back(symbol);
}

// Parses `ranks`, `rank of data`, `chunk 64*n of data`, or nothing.
void ProgramParser::parse_source(Symbol &symbol, bool is_bounded) {
    if (lexer_.accept("ranks")) {
        symbol.source = SymbolSource::ranks;
        if (!is_bounded) std::tie(symbol.minimum, symbol.maximum) = std::pair(1, most_ranks);
    } else if (lexer_.accept("rank")) {
        symbol.source = SymbolSource::rank;
    } else if (lexer_.accept("chunk")) {
        symbol.source = SymbolSource::chunk;
        symbol.divided = parse_extent(lexer_);
    }
    if (symbol.source != SymbolSource::rank && symbol.source != SymbolSource::chunk) return;
    lexer_.expect("of", "symbol");
    symbol.group = parse_plain_name(lexer_, "symbol");
}

// Parses `data of x`, `scale of x`, for a value also `form of x`, or nothing.
ArrayPart ProgramParser::parse_part() {
    using Kind = ArrayPart::Kind;
    for (const auto &[word, kind] : {std::pair("form", Kind::whole), {"data", Kind::data}, {"scale", Kind::scale}}) {
        if (!lexer_.accept(word)) continue;
        lexer_.expect("of", "part");
        return {kind, parse_name(lexer_, "part")};
    }
    return {};
}

void ProgramParser::parse_argument() {
    const PlacedName name = parse_placed("argument");
    check_fresh(name, "argument");
    lexer_.expect(":", "argument");
    Argument argument{named_.define(name.name, parse_type(lexer_))};
    argument.scaled = lexer_.accept("scaled");
    argument.part = program_.values[argument.value].part = parse_part();
    argument.inout = lexer_.accept("inout");
    if (argument.inout && lexer_.accept("from")) argument.initial = parse_integer(lexer_);
    for (const auto &[word, supply] : {std::pair("constant", Supply::constant), {"prepared", Supply::prepared}})
        if (!is_region_ && lexer_.accept(word)) argument.supply = supply;
    for (const auto &[word, supply] : {std::pair("each", Supply::each), {"step", Supply::step}})
        if (is_region_ && lexer_.accept(word)) argument.supply = supply;
    argument.location = lexer_.location(name.token);
    program_.arguments.push_back(argument);
}

void ProgramParser::parse_result() {
    const PlacedName name = parse_placed("result");
    DeclaredResult declared{name, name};
    declared.result.name = name.name;
    if (lexer_.accept(":")) {
        declared.type = parse_type(lexer_);
        declared.result.scaled = lexer_.accept("scaled");
        declared.result.part = parse_part();
    } else {
        declared.result.argument = find_argument(name);
        const Argument &argument = program_.arguments[declared.result.argument];
        declared.type = program_.type(argument.value);
        declared.result.scaled = argument.scaled;
        declared.result.part = argument.part;
        if (!lexer_.is("=")) lexer_.fail("result", "expected ': type' or '= value' after the name");
    }
    if (lexer_.accept("=")) declared.value = parse_placed("result");
    results_.push_back(declared);
}

void ProgramParser::parse_body(const std::string &scope, int depth) {
    check_depth(lexer_, depth);
    while (!lexer_.is("}")) {
        if (lexer_.peek().kind == TokenKind::end) return;
        Lexer ahead = lexer_;
        const bool opens_scope = ahead.accept("scope") && ahead.peek().kind == TokenKind::string;
        if (opens_scope)
            parse_scope(scope, depth);
        else
            parse_node(scope, depth);
    }
}

void ProgramParser::parse_scope(const std::string &outer, int depth) {
    lexer_.expect("scope", "scope");
    const Token token = lexer_.peek();
    const std::string scope = (outer.empty() ? "" : outer + "/") + parse_string(lexer_);
    if (scope.size() > longest_scope) lexer_.fail(token, "scope", "must have at most " + std::to_string(longest_scope) + " characters");
    lexer_.expect("{", "scope");
    parse_body(scope, depth + 1);
    lexer_.expect("}", "scope");
}

void ProgramParser::parse_node(const std::string &scope, int depth) {
    if (!lexer_.peek().first_on_line) lexer_.fail("node", "must start on a new line");
    const size_t before = program_.nodes.size();
    Node node;
    node.scope = scope;
    node.location = lexer_.source(lexer_.peek());
    std::vector<PlacedName> names;
    do {
        check_count(names.size());
        names.push_back(parse_placed("node.result"));
    } while (lexer_.accept(","));
    lexer_.expect("=", "node");
    node.op = parse_plain_name(lexer_, "node.operator");
    std::vector<NamedOperand> operands;
    lexer_.sequence("(", ")", "node.operands", [&] {
        check_count(operands.size()); // a number among the operands becomes a node
        operands.push_back(parse_operand());
    });
    if (lexer_.is("{")) node.attributes = parse_attributes(lexer_, symbols_);
    const std::vector<DeclaredType> types = parse_types(names.size());
    if (!lexer_.peek().first_on_line && lexer_.accept("cotangent")) node.role = Role::cotangent;
    if (!lexer_.peek().first_on_line && lexer_.accept("with")) node.regions = parse_regions(depth + 1);

    named_.add_operands(node, operands, names[0].name);
    for (size_t i = 0; i < names.size(); i++) {
        check_fresh(names[i], "node.result");
        node.results.push_back(named_.define(names[i].name, types[i].type));
        program_.values.back().part = types[i].part;
    }
    program_.nodes.push_back(std::move(node));
    *node_count_ += program_.nodes.size() - before;
}

std::vector<Region> ProgramParser::parse_regions(int depth) {
    check_depth(lexer_, depth);
    std::vector<Region> regions;
    do regions.push_back(std::make_shared<const Program>(ProgramParser(*this, depth).parse_region()));
    while (lexer_.accept(","));
    return regions;
}

NamedOperand ProgramParser::parse_operand() {
    if (starts_number(lexer_)) return {-1, parse_number(lexer_)};
    return {find(parse_placed("node.operand"), "node.operand"), {}};
}

std::vector<DeclaredType> ProgramParser::parse_types(size_t count) {
    if (!lexer_.accept(":")) return std::vector<DeclaredType>(count, {unknown_type()});
    const Token token = lexer_.peek();
    std::vector<DeclaredType> types;
    do {
        types.push_back({parse_type(lexer_)});
        // a token on the next line starts a node, which may have the name `data`
        if (!lexer_.peek().first_on_line) types.back().part = parse_part();
    } while (lexer_.accept(","));
    if (types.size() != count) {
        const std::string requirement = "the number of types must be the number of results, " + std::to_string(count);
        throw UserError({lexer_.location(token), "node.types", requirement, std::to_string(types.size()), ""});
    }
    return types;
}

// Bounds memory by the limit of nodes. `more` is the number of values that the current node adds.
void ProgramParser::check_count(size_t more) const {
    if (*node_count_ + more < most_nodes) return;
    lexer_.fail("program", "a program must have at most " + std::to_string(most_nodes) + " nodes");
}

ValueId ProgramParser::find(const PlacedName &name, const std::string &subject) const {
    const ValueId value = named_.find(name.name);
    const char *const requirement = is_region_ ? "must be an argument of the region, or a value that is defined before in it"
                                               : "must be a value that is defined before";
    if (value < 0) lexer_.fail(name.token, subject, requirement);
    return value;
}

void ProgramParser::check_fresh(const PlacedName &name, const std::string &subject) const {
    if (named_.find(name.name) >= 0) lexer_.fail(name.token, subject, "the name must be unique");
}

int ProgramParser::find_argument(const PlacedName &name) const {
    const auto names = [&](const Argument &argument) { return program_.value_name(argument.value) == name.name; };
    const auto found = std::ranges::find_if(program_.arguments, names);
    if (found == program_.arguments.end())
        lexer_.fail(name.token, "result", "expected ': type' after the name, or the name of an inout argument");
    return static_cast<int>(found - program_.arguments.begin());
}

void ProgramParser::add_result(const DeclaredResult &declared) {
    Result result = declared.result;
    result.value = find(declared.value, "result");
    Type &type = program_.values[result.value].type;
    if (is_unknown(type)) type = declared.type;
    if (!is_unknown(declared.type) && type != declared.type) {
        const std::string value = "the type of " + name_to_string(program_.value_name(result.value)) + ", " + to_string(type);
        throw UserError({lexer_.location(declared.name.token), "result", "must have " + value, to_string(declared.type), ""});
    }
    program_.results.push_back(result);
}

} // namespace

Program parse_program(std::string_view text, const std::string &file) {
    const Location start{file, 1, 1};
    if (text.size() > longest_text) {
        throw UserError({start, "text", "must be at most 64 MiB", std::to_string(text.size()) + " bytes", ""});
    }
    Lexer lexer(text, start);
    std::vector<Program> programs;
    do {
        const Token token = lexer.peek();
        Program program = ProgramParser(lexer).parse();
        if (std::ranges::find(programs, program.name, &Program::name) != programs.end()) {
            throw UserError({lexer.location(token), "program", "the name must be unique", name_to_string(program.name), ""});
        }
        programs.push_back(std::move(program));
    } while (lexer.peek().kind != TokenKind::end);
    Program main = std::move(programs.back());
    programs.pop_back();
    main.programs = std::move(programs);
    return main;
}

Type unknown_type() { return {Dtype::f32, {Extent(-1)}}; }

bool is_unknown(const Type &type) { return type == unknown_type(); }

} // namespace scalide
