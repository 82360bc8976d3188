#include "expr/expression.h"
#include "expr/infix.h"
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace scalide {

namespace {

constexpr int deepest = 200;
constexpr size_t longest = 64 * 1024;

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }
bool continues_name(char c) { return starts_name(c) || is_digit(c); }

/// A recursive-descent parser without a separate lexer. Each line of the grammar has one function. The binary operators come from the table
/// of infix signs.
class Parser {
public:
    Parser(std::string_view text, const Location &where) : text_(text), where_(where) {}

    Expression parse() {
        if (text_.size() > longest) fail("must be at most 64 KiB long", std::to_string(text_.size()) + " bytes");
        skip_spaces();
        Expression expression = parse_whole();
        if (position_ < text_.size()) fail("expected the end of the expression", next_word());
        return expression;
    }

private:
    [[noreturn]] void fail(const std::string &requirement, const std::string &got) const {
        throw UserError({location(), "expression", requirement, got, ""});
    }

    Location location() const {
        Location place = where_;
        if (where_.column == 0) return place;
        place.line += lines_;
        place.column = static_cast<int>(position_ - line_start_) + (lines_ == 0 ? where_.column : 1);
        return place;
    }

    void skip_spaces() {
        for (; position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_])); position_++) {
            if (text_[position_] != '\n') continue;
            lines_++;
            line_start_ = position_ + 1;
        }
    }

    std::string_view word_here() const {
        size_t end = position_;
        if (end < text_.size() && starts_name(text_[end]))
            while (end < text_.size() && continues_name(text_[end])) end++;
        return text_.substr(position_, end - position_);
    }

    /// Returns the next word, for messages.
    std::string next_word() const {
        if (position_ >= text_.size()) return "the end";
        std::string_view word = word_here();
        if (word.empty()) word = text_.substr(position_, 1);
        return "'" + std::string(word) + "'";
    }

    /// Consumes `sign` if it is next. A sign that is a word must be a whole word of the text.
    bool take(std::string_view sign) {
        const bool here = starts_name(sign[0]) ? word_here() == sign : text_.substr(position_).starts_with(sign);
        if (!here) return false;
        position_ += sign.size();
        skip_spaces();
        return true;
    }

    void expect(std::string_view sign) {
        if (take(sign)) return;
        const std::string wanted = "expected '" + std::string(sign) + "'";
        if (position_ < text_.size()) fail(wanted, next_word());
        throw UserError(Message{location(), "expression", wanted + ", but the expression ends here", "", unquoted_comma});
    }

    const Expression &checked(const Expression &expression) const {
        if (expression->depth > deepest) fail("must be nested at most 200 levels deep", "more levels");
        return expression;
    }

    const InfixSign *take_infix(Level level) {
        for (const InfixSign &infix : infix_signs)
            if (infix.level == level && take(infix.sign)) return &infix;
        return nullptr;
    }

    /// Counts recursion, because nested parentheses do not make the tree deeper.
    struct Nesting {
        Parser &parser;
        explicit Nesting(Parser &parser) : parser(parser) {
            if (++parser.nesting_ > deepest) parser.fail("must be nested at most 200 levels deep", "more levels");
        }
        ~Nesting() { parser.nesting_--; }
    };

    Expression parse_whole() {
        const Nesting nesting(*this);
        return parse_level(Level::or_);
    }

    Expression parse_level(Level level) {
        if (level == Level::not_) return parse_not();
        if (level == Level::unary) return parse_unary();
        const Level operand = static_cast<Level>(static_cast<int>(level) + 1);
        const Location start = location();
        Expression left = parse_level(operand);
        while (const InfixSign *infix = take_infix(level)) {
            left = checked(make_call(std::string(infix->callee), {left, parse_level(operand)}, start));
            if (level == Level::comparison) break;
        }
        return left;
    }

    Expression parse_not() {
        const Location start = location();
        if (!take("not")) return parse_level(Level::comparison);
        const Nesting nesting(*this);
        return checked(make_call("not", {parse_not()}, start));
    }

    Expression parse_unary() {
        const Location start = location();
        if (!take("-")) return parse_post();
        const Nesting nesting(*this);
        const bool literal = position_ < text_.size() && is_digit(text_[position_]);
        Expression operand = parse_unary();
        if (literal && operand->kind == ExpressionNode::Kind::number) return make_number(-operand->number, start);
        return checked(make_call("neg", {operand}, start));
    }

    Expression parse_post() {
        const Location start = location();
        Expression expression = parse_atom();
        while (take(".")) {
            const std::string word(word_here());
            if (word.empty()) fail("expected a name after '.'", next_word());
            take(word);
            expression = checked(make_member(expression, word, start));
        }
        return expression;
    }

    Expression parse_atom() {
        const Location start = location();
        if (take("(")) {
            Expression expression = parse_whole();
            expect(")");
            return expression;
        }
        if (take("[")) return checked(make_list(parse_list("]"), start));
        if (position_ < text_.size() && is_digit(text_[position_])) return make_number(parse_number(), start);
        const std::string word(word_here());
        const bool is_call = text_.substr(position_ + word.size()).starts_with("(");
        const bool is_sign = std::ranges::find(infix_signs, word, &InfixSign::sign) != std::end(infix_signs) || word == "not";
        if (word.empty() || (is_sign && !is_call)) fail("expected a number, a name, a list or '('", next_word());
        take(word);
        if (!take("(")) return make_name(word, start);
        return checked(make_call(word, parse_list(")"), start));
    }

    std::vector<Expression> parse_list(std::string_view end) {
        std::vector<Expression> elements;
        if (take(end)) return elements;
        do elements.push_back(parse_whole());
        while (take(","));
        expect(end);
        return elements;
    }

    double parse_number() {
        double number = 0;
        const char *begin = text_.data() + position_;
        const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
        if (error != std::errc()) fail("must be a number within the range of f64", std::string(begin, end));
        position_ += end - begin;
        if (position_ < text_.size() && continues_name(text_[position_]))
            fail("expected an operator between the number and the name", next_word());
        skip_spaces();
        return number;
    }

    std::string_view text_;
    Location where_;
    size_t position_ = 0, line_start_ = 0;
    int lines_ = 0; ///< number of newlines before `position_`; the last of them is before `line_start_`
    int nesting_ = 0;
};

} // namespace

Expression parse_expression(std::string_view text, const Location &where) { return Parser(text, where).parse(); }

} // namespace scalide
