#include "ir/parse_parts.h"

#include "ir/dtype_advice.h"
#include "ir/text.h"
#include "ir/words.h"

#include <charconv>
#include <limits>

namespace scalide {

namespace {

constexpr size_t longest_name = 1000;
constexpr int deepest = 200;
constexpr int most_terms = 64;
constexpr int most_factors = 16;
constexpr size_t highest_rank = 32;

// Adds a location to errors of extent arithmetic, which throws if a coefficient overflows.
template<typename Operation>
Extent located(const Lexer &lexer, const Token &token, const Operation &operation) {
    try {
        return operation();
    } catch (const UserError &error) {
        Message message = error.message();
        message.location = lexer.location(token);
        throw UserError(message);
    }
}

Extent parse_factor(Lexer &lexer) {
    if (lexer.peek().kind == TokenKind::integer) return parse_integer(lexer);
    if (!is_plain_name(lexer.peek().text)) lexer.fail("extent", "must be an integer or a symbol");
    return Extent::symbol(parse_plain_name(lexer, "extent"));
}

Extent parse_term(Lexer &lexer) {
    Extent term = parse_factor(lexer);
    for (int factors = 1; lexer.is("*"); factors++) {
        if (factors == most_factors) lexer.fail("extent", "a term must have at most " + std::to_string(most_factors) + " factors");
        const Token sign = lexer.take();
        const Extent factor = parse_factor(lexer);
        term = located(lexer, sign, [&] { return term * factor; });
    }
    return term;
}

bool is_real(const Token &token) {
    return token.kind == TokenKind::real || (token.kind == TokenKind::name && (token.text == "inf" || token.text == "nan"));
}

double parse_real(Lexer &lexer) {
    const Token token = lexer.take();
    double number = 0;
    const auto [end, error] = std::from_chars(token.text.data(), token.text.data() + token.text.size(), number);
    if (error != std::errc()) lexer.fail(token, "number", "must be within the range of f64");
    return number;
}

// Returns the token after a '-', or the next token if there is no '-'.
Token unsigned_token(const Lexer &lexer) {
    Lexer ahead = lexer;
    ahead.accept("-");
    return ahead.peek();
}

bool starts_sum(const Lexer &lexer) {
    Lexer ahead = lexer;
    ahead.take();
    return ahead.is("*") || ahead.is("+") || ahead.is("-");
}

Attribute parse_list(Lexer &lexer, const std::set<std::string> &symbols, int depth);

Attribute parse_attribute(Lexer &lexer, const std::set<std::string> &symbols, int depth) {
    if (lexer.is("[")) return parse_list(lexer, symbols, depth + 1);
    if (lexer.peek().kind == TokenKind::string) return parse_string(lexer);
    if (is_real(unsigned_token(lexer))) return parse_number(lexer);
    if (lexer.peek().kind == TokenKind::integer || lexer.is("-")) return parse_extent(lexer);
    if (lexer.peek().kind != TokenKind::name) lexer.fail("attribute", "must be a number, an extent, a word, a string or a list");
    const std::string word(lexer.peek().text);
    if (symbols.contains(word) || starts_sum(lexer)) return parse_extent(lexer);
    lexer.take();
    return word;
}

Attribute parse_list(Lexer &lexer, const std::set<std::string> &symbols, int depth) {
    check_depth(lexer, depth);
    std::vector<Attribute> list;
    lexer.sequence("[", "]", "attribute", [&] { list.push_back(parse_attribute(lexer, symbols, depth)); });
    return list;
}

void check_length(const Lexer &lexer, const Token &token, std::string_view name, const std::string &subject) {
    const bool fits = !name.empty() && name.size() <= longest_name;
    if (!fits) lexer.fail(token, subject, "the name must have 1 to " + std::to_string(longest_name) + " bytes");
}

// Parses all of `text`. It is an error if anything is left.
template<typename Parser>
auto parse_whole(std::string_view text, const Location &where, const Parser &parser) {
    Lexer lexer(text, where);
    auto part = parser(lexer);
    if (lexer.peek().kind != TokenKind::end) lexer.fail("text", "expected the end of the text");
    return part;
}

} // namespace

Extent parse_extent(Lexer &lexer) {
    const bool negative = lexer.accept("-");
    Extent sum = parse_term(lexer);
    if (negative) sum = Extent(0) - sum;
    for (int terms = 1; lexer.is("+") || lexer.is("-"); terms++) {
        if (terms == most_terms) lexer.fail("extent", "must have at most " + std::to_string(most_terms) + " terms");
        const Token sign = lexer.take();
        const Extent term = parse_term(lexer);
        sum = located(lexer, sign, [&] { return sign.text == "+" ? sum + term : sum - term; });
    }
    return sum;
}

Extents parse_shape(Lexer &lexer) {
    Extents shape;
    lexer.sequence("[", "]", "type", [&] {
        if (shape.size() == highest_rank) lexer.fail("type", "must have at most " + std::to_string(highest_rank) + " extents");
        shape.push_back(parse_extent(lexer));
    });
    return shape;
}

Type parse_type(Lexer &lexer) {
    const std::optional<Dtype> dtype = parse_dtype(lexer.peek().text);
    if (!dtype) {
        const Token token = lexer.peek();
        if (const std::string advice = dtype_advice(token.text); !advice.empty())
            throw UserError(unknown_name(lexer.location(token), "dtype", std::string(token.text), advice));
        std::string names;
        for (const Dtype known : all_dtypes()) names += (names.empty() ? "" : ", ") + std::string(to_string(known));
        lexer.fail("type", "must be one of " + names);
    }
    lexer.take();
    return {*dtype, parse_shape(lexer)};
}

Attribute parse_attribute(Lexer &lexer, const std::set<std::string> &symbols) { return parse_attribute(lexer, symbols, 0); }

Attributes parse_attributes(Lexer &lexer, const std::set<std::string> &symbols) {
    Attributes attributes;
    lexer.sequence("{", "}", "attributes", [&] {
        const Token token = lexer.peek();
        const std::string name = parse_plain_name(lexer, "attribute");
        if (attributes.contains(name)) lexer.fail(token, "attribute", "each attribute must be given once");
        lexer.expect(":", "attribute");
        attributes[name] = parse_attribute(lexer, symbols);
    });
    return attributes;
}

std::string parse_name(Lexer &lexer, const std::string &subject) {
    const Token token = lexer.peek();
    const bool is_quoted = token.kind == TokenKind::string;
    if (!is_quoted && !is_plain_name(token.text)) lexer.fail(subject, "must be a name of letters, digits and _ . $, or text in quotes");
    const std::string name = is_quoted ? parse_string(lexer) : std::string(lexer.take().text);
    check_length(lexer, token, name, subject);
    return name;
}

std::string parse_plain_name(Lexer &lexer, const std::string &subject) {
    const Token token = lexer.peek();
    if (!is_plain_name(token.text)) lexer.fail(subject, "must be a name of letters, digits and _ . $");
    check_length(lexer, token, token.text, subject);
    return std::string(lexer.take().text);
}

std::string parse_string(Lexer &lexer) {
    if (lexer.peek().kind != TokenKind::string) lexer.fail("string", "must be text in \"\"");
    const Token token = lexer.take();
    const std::optional<std::string> text = unquote(token.text);
    if (!text) lexer.fail(token, "string", "the only escapes are \\\", \\\\ and \\xHH");
    if (!is_text(*text)) lexer.fail(token, "string", "must be UTF-8 without zero bytes");
    return *text;
}

int64_t parse_integer(Lexer &lexer) {
    if (lexer.peek().kind != TokenKind::integer) lexer.fail("number", "must be an integer");
    const Token token = lexer.take();
    int64_t number = 0;
    const auto [end, error] = std::from_chars(token.text.data(), token.text.data() + token.text.size(), number);
    if (error != std::errc()) lexer.fail(token, "number", "must be below 2^63");
    return number;
}

bool starts_number(const Lexer &lexer) { return lexer.is("-") || lexer.peek().kind == TokenKind::integer || is_real(lexer.peek()); }

Attribute parse_number(Lexer &lexer) {
    const bool negative = lexer.accept("-");
    if (is_real(lexer.peek())) {
        const double number = parse_real(lexer);
        return negative ? -number : number;
    }
    const int64_t number = parse_integer(lexer);
    return negative ? -number : number;
}

void check_depth(const Lexer &lexer, int depth) {
    if (depth > deepest) lexer.fail("text", "must be nested at most " + std::to_string(deepest) + " levels deep");
}

Type parse_type(std::string_view text, const Location &where) {
    return parse_whole(text, where, [](Lexer &lexer) { return parse_type(lexer); });
}

Attribute parse_attribute(std::string_view text, const Location &where) {
    return parse_whole(text, where, [](Lexer &lexer) { return parse_attribute(lexer, {}); });
}

Extent parse_extent(std::string_view text, const Location &where) {
    return parse_whole(text, where, [](Lexer &lexer) { return parse_extent(lexer); });
}

} // namespace scalide
