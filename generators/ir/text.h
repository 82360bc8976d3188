#pragma once
#include "ir/program.h"
#include <string_view>

namespace scalide {

/// The text form of a program (`.scl` files, dumps, golden files, kernel text). docs/reference/scl.md describes it for users. One node a
/// line:
///
///     # comment
///     program head(z: f32[b, 10], y: i32[b]) -> (loss: f32[b]) { ... }        sub-programs come first, the main program last
///     program sgd_step {rounding: down, strategy: l2} [b in 1..4096 step 16]   optional attributes and symbols with bounds
///         (x: f32[b, 64], y: i32[b], w: f16[64, 10] scaled inout, lr: f32[])
///         -> (loss: f32[], w = w1, norm: f32[] scaled = n2) {
///       z = dot_general(x, w) {contract: [[1], [0]]} : f32[b, 10]
///       scope "mlp/0" {
///         values, indices = top_k(z) {k: 2} : f32[b, 2], i32[b, 2]
///         g = mul(z, z) : f32[b, 10] cotangent                                  the role, if it is not primal
///       }
///       l = call(z, y) {program: head} : f32[b]
///       h = mul(z, 0.5) : f32[b, 10]                                            a number as an operand: a `constant` node, broadcast
///       "layer 0/h" = tanh(h) : f32[b, 10]                                      a name in quotes
///       c, ys = scan(h, z) {length: b} : f32[10], f32[b, 10] with               a node that owns programs
///         body(c: f32[10] inout, x: f32[10] each, i: i32[] step) -> (c = c1, y: f32[10] = c1) {
///           c1 = add(c, x) : f32[10]
///         }
///     }
///
/// Regions. The programs of a node stand after `with`, on the line on which the node ends. They use the symbols of the program around them.
/// Arguments have types; `each` is an element of the first axis of the operand, `step` its number.
///
/// Results. `name: type` is the value with that name. `name: type = value` is another value. `w = w1` is the new value of inout argument w.
///
/// State. `step: u32[] inout from 0` is state that a policy adds. It is 0 before the first run.
///
/// Scaled arrays. propagate_scales writes their components as `x.data: f16[n] data of x, x.scale: f32[] scale of x`; the names may differ.
/// The type of a node's result can say the same: `q = .. : f8_e4m3fn[n] data of h`. `form of h` is a rounded or rescaled copy of h.
///
/// Types. The type after ':' may be left out if infer_types can compute it. The parser then sets dtype f32 and one extent -1 (unknown
/// shape). A value without a type gets the type of the result that it becomes. Symbols in argument types are declared.
///
/// Numbers. A number as an operand gets the dtype of the first other operand that is not bool, or f32. For an elementwise base operator it
/// also gets the shape of the first operand with axes. The parser inserts nothing else.
///
/// Names may be any text of 1 to 1000 bytes of UTF-8 without zero bytes. A plain name has letters, digits and `_ . $` and does not start
/// with a digit or a point. Other names are in quotes (escapes: `\"`, `\\`, `\xHH`), and so are the names `"inf"` and `"nan"`. Operators,
/// attributes and symbols have plain names only. Words in attributes have letters, digits and `_ . /`; other words are in quotes. A word
/// that is also a symbol means the symbol, unless it is in quotes. Nested scopes are joined by '/'.
///
/// Throws UserError with file, line and column for a syntax error, and for these limits: text over 64 MiB, more than 1,000,000 nodes, lists
/// or scopes nested more than 200 deep, types of more than 32 axes, extents of more than 64 terms.
Program parse_program(std::string_view text, const std::string &file);

/// Returns text that parses back to an equal program.
std::string to_string(const Program &program);

/// Returns true for the type of a value without a type in the text.
bool is_unknown(const Type &type);
Type unknown_type();

/// Parses a text that is one type, attribute or extent. No symbols are known here: a single name in an attribute is a word. to_extents
/// takes it as a symbol.
Type parse_type(std::string_view text, const Location &where);
Attribute parse_attribute(std::string_view text, const Location &where);
Extent parse_extent(std::string_view text, const Location &where);

} // namespace scalide
