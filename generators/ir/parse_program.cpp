#include "ir/named_program.h"
#include "ir/parse_parts.h"
#include "ir/text.h"

#include <algorithm>

namespace scalide {

namespace {

constexpr size_t longest_text = size_t(64) << 20;
constexpr size_t most_nodes = 1000000;
constexpr size_t longest_scope = 1000;

// `name: type scaled = value`, `name: type data of x = value` or `argument = value`, kept until the body has been read.
struct DeclaredResult {
    Token token, value;
    Result result;
    Type type;
};

// Reads one `program name {..} [..] (..) -> (..) { .. }`.
class ProgramParser {
public:
    explicit ProgramParser(Lexer &lexer) : lexer_(lexer) {}
    Program parse();

private:
    void parse_symbol();
    ArrayPart parse_part();
    void parse_argument();
    void parse_result();
    void parse_body(const std::string &scope, int depth);
    void parse_scope(const std::string &outer, int depth);
    void parse_node(const std::string &scope);
    NamedOperand parse_operand();
    std::vector<Type> parse_types(size_t count);

    void check_count(size_t more) const;
    ValueId find(const Token &token, const std::string &subject) const;
    void check_fresh(const Token &token, const std::string &subject) const;
    int find_argument(const Token &token) const;
    void add_result(const DeclaredResult &declared);

    Lexer &lexer_;
    NamedProgram named_;
    Program &program_ = named_.program;
    std::set<std::string> symbols_;
    std::vector<DeclaredResult> results_;
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
    // A second time, now that symbols and words can be told apart.
    if (attributes.is("{")) program_.attributes = parse_attributes(attributes, symbols_);
    lexer_.expect("->", "program");
    lexer_.sequence("(", ")", "program.results", [&] { parse_result(); });
    lexer_.expect("{", "program");
    parse_body("", 0);
    lexer_.expect("}", "program");
    for (const DeclaredResult &declared : results_) add_result(declared);
    return std::move(program_);
}

void ProgramParser::parse_symbol() {
    const Token token = lexer_.peek();
    Symbol symbol{parse_name(lexer_, "symbol")};
    if (!symbols_.insert(symbol.name).second) lexer_.fail(token, "symbol", "must have a name of its own");
    if (lexer_.accept("in")) {
        symbol.minimum = parse_integer(lexer_);
        lexer_.expect("..", "symbol");
        symbol.maximum = parse_integer(lexer_);
    }
    if (lexer_.accept("step")) symbol.multiple = parse_integer(lexer_);
    program_.symbols.push_back(symbol);
}

// `data of x`, `scale of x`, or nothing.
ArrayPart ProgramParser::parse_part() {
    const bool is_data = lexer_.accept("data");
    if (!is_data && !lexer_.accept("scale")) return {};
    lexer_.expect("of", "part");
    return {is_data ? ArrayPart::Kind::data : ArrayPart::Kind::scale, parse_name(lexer_, "part")};
}

void ProgramParser::parse_argument() {
    const Token token = lexer_.peek();
    const std::string name = parse_name(lexer_, "argument");
    check_fresh(token, "argument");
    lexer_.expect(":", "argument");
    Argument argument{named_.define(name, parse_type(lexer_))};
    argument.scaled = lexer_.accept("scaled");
    argument.part = parse_part();
    argument.inout = lexer_.accept("inout");
    argument.location = lexer_.location(token);
    program_.arguments.push_back(argument);
}

void ProgramParser::parse_result() {
    DeclaredResult declared{lexer_.peek(), lexer_.peek(), {}, {}};
    declared.result.name = parse_name(lexer_, "result");
    if (lexer_.accept(":")) {
        declared.type = parse_type(lexer_);
        declared.result.scaled = lexer_.accept("scaled");
        declared.result.part = parse_part();
    } else {
        declared.result.argument = find_argument(declared.token);
        const Argument &argument = program_.arguments[declared.result.argument];
        declared.type = program_.type(argument.value);
        declared.result.scaled = argument.scaled;
        declared.result.part = argument.part;
        if (!lexer_.is("=")) lexer_.fail("result", "must have ': type' or '= value' after its name");
    }
    if (lexer_.accept("=")) {
        declared.value = lexer_.peek();
        parse_name(lexer_, "result");
    }
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
            parse_node(scope);
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

void ProgramParser::parse_node(const std::string &scope) {
    if (!lexer_.peek().first_on_line) lexer_.fail("node", "must start on a line of its own");
    Node node;
    node.scope = scope;
    node.location = lexer_.location(lexer_.peek());
    std::vector<Token> names;
    do {
        check_count(names.size());
        names.push_back(lexer_.peek());
        parse_name(lexer_, "node.result");
    } while (lexer_.accept(","));
    lexer_.expect("=", "node");
    node.op = parse_name(lexer_, "node.operator");
    std::vector<NamedOperand> operands;
    lexer_.sequence("(", ")", "node.operands", [&] {
        check_count(operands.size()); // numbers become nodes
        operands.push_back(parse_operand());
    });
    if (lexer_.is("{")) node.attributes = parse_attributes(lexer_, symbols_);
    const std::vector<Type> types = parse_types(names.size());
    if (!lexer_.peek().first_on_line && lexer_.accept("cotangent")) node.role = Role::cotangent;

    named_.add_operands(node, operands, std::string(names[0].text));
    for (size_t i = 0; i < names.size(); i++) {
        check_fresh(names[i], "node.result");
        node.results.push_back(named_.define(std::string(names[i].text), types[i]));
    }
    program_.nodes.push_back(std::move(node));
}

NamedOperand ProgramParser::parse_operand() {
    if (starts_number(lexer_)) return {-1, parse_number(lexer_)};
    const Token token = lexer_.peek();
    parse_name(lexer_, "node.operand");
    return {find(token, "node.operand"), {}};
}

std::vector<Type> ProgramParser::parse_types(size_t count) {
    if (!lexer_.accept(":")) return std::vector<Type>(count, unknown_type());
    const Token token = lexer_.peek();
    std::vector<Type> types;
    do {
        types.push_back(parse_type(lexer_));
    } while (lexer_.accept(","));
    if (types.size() != count) {
        const std::string requirement = "must be as many as the results, " + std::to_string(count);
        throw UserError({lexer_.location(token), "node.types", requirement, std::to_string(types.size()), ""});
    }
    return types;
}

// Keeps memory in proportion: `more` values of the node at hand beside all nodes.
void ProgramParser::check_count(size_t more) const {
    if (program_.nodes.size() + more < most_nodes) return;
    lexer_.fail("program", "must have at most " + std::to_string(most_nodes) + " nodes");
}

ValueId ProgramParser::find(const Token &token, const std::string &subject) const {
    const ValueId value = named_.find(std::string(token.text));
    if (value < 0) lexer_.fail(token, subject, "must be a value defined above");
    return value;
}

void ProgramParser::check_fresh(const Token &token, const std::string &subject) const {
    if (named_.find(std::string(token.text)) >= 0) lexer_.fail(token, subject, "must have a name that no other value has");
}

int ProgramParser::find_argument(const Token &token) const {
    const auto names = [&](const Argument &argument) { return program_.value_name(argument.value) == token.text; };
    const auto found = std::ranges::find_if(program_.arguments, names);
    if (found == program_.arguments.end()) lexer_.fail(token, "result", "must have ': type' after its name, or be an inout argument");
    return static_cast<int>(found - program_.arguments.begin());
}

void ProgramParser::add_result(const DeclaredResult &declared) {
    Result result = declared.result;
    result.value = find(declared.value, "result");
    Type &type = program_.values[result.value].type;
    if (is_unknown(type)) type = declared.type;
    if (!is_unknown(declared.type) && type != declared.type) {
        const std::string value = "the type of " + program_.value_name(result.value) + ", " + to_string(type);
        throw UserError({lexer_.location(declared.token), "result", "must have " + value, to_string(declared.type), ""});
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
            throw UserError({lexer.location(token), "program", "must have a name of its own", program.name, ""});
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
