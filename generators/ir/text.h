#pragma once
#include "ir/program.h"
#include <string_view>

namespace scalide {

/// The text form (`.scl`, dumps, golden files, kernel text). One node a line:
///
///     # comment
///     program head(z: f32[b, 10], y: i32[b]) -> (loss: f32[b]) { ... }        sub-programs first, the main program last
///     program sgd_step {rounding: down, strategy: l2} [b in 1..4096 step 16]   attributes and symbols with bounds: both optional
///         (x: f32[b, 64], y: i32[b], w: f16[64, 10] scaled inout, lr: f32[])
///         -> (loss: f32[], w = w1, norm: f32[] scaled = n2) {
///       z = dot_general(x, w) {contract: [[1], [0]]} : f32[b, 10]
///       scope "mlp/0" {
///         values, indices = top_k(z) {k: 2} : f32[b, 2], i32[b, 2]
///         g = mul(z, z) : f32[b, 10] cotangent                                  role, when it is not primal
///       }
///       l = call(z, y) {program: head} : f32[b]
///       h = mul(z, 0.5) : f32[b, 10]                                            a number as operand: a `constant` node, broadcast
///       "layer 0/h" = tanh(h) : f32[b, 10]                                      a name that is not plain
///     }
///
/// A result `name: type` is the value of that name; `name: type = value` another; `w = w1` says what the inout argument w holds
/// afterwards. `step: u32[] inout from 0` is state that a policy adds, 0 before the first run. `x.data: f16[n] data of x, x.scale: f32[]
/// scale of x` are the parts of a scaled argument or result x, whatever their names are (propagate_scales writes them). So the types of a
/// node say what its results are: `q = .. : f8_e4m3fn[n] data of h`, and `form of h` is a whole array that a pass made of h, rounded or
/// rescaled. Types after ':' may be left out where `infer_types` can find them: they parse as dtype f32 of unknown shape, marked by one
/// extent -1. A value whose type was left out takes that of the result it becomes. Symbols of argument types are declared. A number takes
/// the dtype of the first value beside it that is not bool (f32 when there is none), and the shape of the first value with axes when the
/// operator is an elementwise base operator. The parser inserts nothing else.
///
/// Names are labels and may be any text of 1 to 1000 bytes, UTF-8 without zero bytes. Plain ones, letters, digits and `_ . $` that start
/// with none of digit and point, stand as they are, all others in quotes (escapes: `\"`, `\\`, `\xHH`), `"inf"` and `"nan"` too, which are
/// numbers without them. Operators, attributes and symbols have plain names only. Words in attributes are letters, digits and `_ . /`,
/// anything else stands in quotes. A word that names a symbol is that symbol unless it is quoted. Nested scopes are joined by '/'.
///
/// Throws UserError with file, line and column. Texts over 64 MiB, programs of more than 1,000,000 nodes, lists and scopes nested more
/// than 200 deep, types of more than 32 axes and extents of more than 64 terms are errors.
Program parse_program(std::string_view text, const std::string &file);

/// Text that parses back to an equal program.
std::string to_string(const Program &program);

/// True for the type of a value whose type was left out in the text.
bool is_unknown(const Type &type);
Type unknown_type();

/// One type, attribute or extent in the syntax above; the whole text must be used. No symbols are known here: a lone name in an
/// attribute is a word (to_extents takes it as a symbol).
Type parse_type(std::string_view text, const Location &where);
Attribute parse_attribute(std::string_view text, const Location &where);
Extent parse_extent(std::string_view text, const Location &where);

} // namespace scalide
