#include "ir/lexer.h"

#include "ir/words.h"

#include <algorithm>
#include <charconv>

namespace scalide {

namespace {

constexpr std::string_view blanks = " \t\r\n";
constexpr size_t longest_quotation = 40; // longest part of a token that a message quotes

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_character(char c) { return is_name_character(c) || c == '/'; }

std::string describe(const Token &token) {
    if (token.kind == TokenKind::end) return "the end of the text";
    if (token.text.size() <= longest_quotation) return std::string(token.text);
    return std::string(token.text.substr(0, longest_quotation)) + "...";
}

// A number before a name, such as 2b, is a product.
std::string advice_on_number(std::string_view text) {
    size_t digits = 0;
    while (digits < text.size() && is_digit(text[digits])) digits++;
    const std::string_view name = text.substr(digits);
    if (text[0] == '0' || !is_plain_name(name)) return "";
    return "Write " + std::string(text.substr(0, digits)) + "*" + std::string(name);
}

} // namespace

Lexer::Lexer(std::string_view text, const Location &start)
    : text_(text), file_(start.file), line_(std::max(start.line, 1)), column_(std::max(start.column, 1)) {
    scan();
}

Token Lexer::take() {
    const Token taken = token_;
    scan();
    return taken;
}

bool Lexer::is(std::string_view text) const {
    return (token_.kind == TokenKind::sign || token_.kind == TokenKind::name) && token_.text == text;
}

bool Lexer::accept(std::string_view text) {
    const bool found = is(text);
    if (found) scan();
    return found;
}

void Lexer::expect(std::string_view text, const std::string &subject) {
    if (!accept(text)) fail(subject, "expected '" + std::string(text) + "'");
}

Location Lexer::location(const Token &token) const { return {std::string(file_), token.line, token.column}; }

Location Lexer::source(const Token &token) const {
    constexpr std::string_view mark = "  #@ ";
    const size_t begin = static_cast<size_t>(token.text.data() - text_.data()), end = std::min(text_.find('\n', begin), text_.size());
    const std::string_view line = text_.substr(begin, end - begin);
    const size_t at = line.rfind(mark);
    if (at == std::string_view::npos || line.back() == '"') return location(token); // a quoted name may contain the mark
    Location found;
    std::string_view rest = line.substr(at + mark.size());
    const auto take_number = [&] {
        int number = 0;
        const char *const last = rest.data() + rest.size();
        if (rest.size() > 1 && rest[0] == ':') rest.remove_prefix(std::from_chars(rest.data() + 1, last, number).ptr - rest.data());
        return number;
    };
    for (size_t colon = rest.find(':'); colon != std::string_view::npos; colon = rest.find(':', colon + 1)) {
        if (colon + 1 == rest.size() || !is_digit(rest[colon + 1])) continue; // a file name may contain a colon
        found.file = std::string(rest.substr(0, colon));
        rest.remove_prefix(colon);
        found.line = take_number();
        found.column = take_number();
        break;
    }
    return found.line > 0 ? found : location(token);
}

void Lexer::fail(const std::string &subject, const std::string &requirement) const { fail(token_, subject, requirement); }

void Lexer::fail(const Token &token, const std::string &subject, const std::string &requirement) const {
    throw UserError({location(token), subject, requirement, describe(token), ""});
}

void Lexer::step() {
    const bool line_ends = text_[place_++] == '\n';
    line_ += line_ends;
    column_ = line_ends ? 1 : column_ + 1;
    first_on_line_ = first_on_line_ || line_ends;
}

void Lexer::skip_blanks() {
    while (place_ < text_.size()) {
        if (text_[place_] == '#') {
            while (place_ < text_.size() && text_[place_] != '\n') step();
        } else if (blanks.find(text_[place_]) != std::string_view::npos) {
            step();
        } else {
            return;
        }
    }
}

void Lexer::scan() {
    skip_blanks();
    token_ = {TokenKind::end, {}, line_, column_, first_on_line_};
    if (place_ == text_.size()) return;
    const char first = text_[place_];
    const size_t end = end_of_token();
    token_.text = text_.substr(place_, end - place_);
    if (is_digit(first)) {
        token_.kind = token_.text.find_first_of(".eE") == std::string_view::npos ? TokenKind::integer : TokenKind::real;
    } else if (first == '"') {
        token_.kind = TokenKind::string;
    } else {
        token_.kind = is_word_character(first) ? TokenKind::name : TokenKind::sign;
    }
    while (place_ < end) step();
    first_on_line_ = false;
}

size_t Lexer::end_of_token() const {
    constexpr std::string_view pairs[] = {"->", ".."};
    constexpr std::string_view signs = "()[]{},:=+-*";
    const char first = text_[place_];
    if (is_digit(first)) return end_of_number();
    if (first == '"') return end_of_string();
    for (const std::string_view pair : pairs) {
        if (text_.substr(place_, 2) == pair) return place_ + 2;
    }
    size_t end = place_;
    while (end < text_.size() && is_word_character(text_[end]) && text_[place_] != '.') end++;
    if (end > place_) return end;
    if (signs.find(first) != std::string_view::npos) return place_ + 1;
    throw UserError({location(token_), "text", "expected a name, a number, a string or a sign", quote({&text_[place_], 1}), ""});
}

size_t Lexer::end_of_number() const {
    size_t end = place_;
    const auto skip_digits = [&] {
        while (is_digit(at(end))) end++;
    };
    skip_digits();
    if (at(end) == '.' && is_digit(at(end + 1))) {
        end++;
        skip_digits();
    }
    if (at(end) == 'e' || at(end) == 'E') {
        const size_t sign = at(end + 1) == '+' || at(end + 1) == '-';
        if (is_digit(at(end + 1 + sign))) {
            end += 1 + sign;
            skip_digits();
        }
    }
    const bool is_range = at(end) == '.' && at(end + 1) == '.';
    if (!is_word_character(at(end)) || is_range) return end;
    while (is_word_character(at(end))) end++;
    const std::string_view text = text_.substr(place_, std::min(end - place_, longest_quotation));
    throw UserError(
        {location(token_), "number", "must be digits with an optional fraction and exponent", std::string(text), advice_on_number(text)});
}

size_t Lexer::end_of_string() const {
    for (size_t end = place_ + 1; end < text_.size() && text_[end] != '\n'; end++) {
        if (text_[end] == '"') return end + 1;
        if (text_[end] == '\\') end++;
    }
    throw UserError({location(token_), "string", "must end with \" on the same line", "the end of the line", ""});
}

} // namespace scalide
