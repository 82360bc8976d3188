#pragma once
#include "expr/error.h"
#include <string_view>

namespace scalide {

enum class TokenKind { name, integer, real, string, sign, end };

/// A token. `text` points into the program text; for a string it includes the quotes.
struct Token {
    TokenKind kind = TokenKind::end;
    std::string_view text;
    int line = 0, column = 0;
    bool first_on_line = false;
};

/// Splits program text into tokens, with one token of look-ahead. A copy saves the position. Names and words are one kind of token
/// (letters, digits, `_ . $ /`). White space and `#` comments are skipped. Throws UserError at a character or string that is no token.
class Lexer {
public:
    /// `text` and `start` must outlive the lexer and its tokens. An unknown line or column is 1.
    Lexer(std::string_view text, const Location &start);

    const Token &peek() const { return token_; }
    Token take();

    /// Returns true if the next token is this sign or name.
    bool is(std::string_view text) const;
    /// Takes the next token if it is this sign or name.
    bool accept(std::string_view text);
    /// Takes the next token, which must be this sign or name; `subject` names the construct in the error.
    void expect(std::string_view text, const std::string &subject);

    /// Takes `open item, item close`, or `open close`; `item()` takes one item.
    template<typename Item>
    void sequence(std::string_view open, std::string_view close, const std::string &subject, const Item &item) {
        expect(open, subject);
        if (accept(close)) return;
        do {
            item();
        } while (accept(","));
        if (!accept(close)) fail(subject, "expected ',' or '" + std::string(close) + "'");
    }

    Location location(const Token &token) const;
    /// Returns the source line of the user from which the line of a token was made, if the line ends with a comment such as
    /// `#@ model.py:12:4 (loss)`. Program.save of Python writes these comments. Otherwise returns location().
    Location source(const Token &token) const;
    /// Throws UserError at the next token: `<subject>: <requirement>, got <token>`.
    [[noreturn]] void fail(const std::string &subject, const std::string &requirement) const;
    /// Throws UserError at another token.
    [[noreturn]] void fail(const Token &token, const std::string &subject, const std::string &requirement) const;

private:
    void skip_blanks();
    void step();
    void scan();
    size_t end_of_token() const;
    size_t end_of_number() const;
    size_t end_of_string() const;
    char at(size_t place) const { return place < text_.size() ? text_[place] : '\0'; }

    std::string_view text_;
    std::string_view file_;
    size_t place_ = 0;
    int line_, column_;
    bool first_on_line_ = true;
    Token token_;
};

} // namespace scalide
