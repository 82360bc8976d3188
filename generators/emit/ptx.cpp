#include "emit/ptx.h"
#include "expr/error.h"
#include "lower/halide/device_ops.h"
#include <regex>
#include <sstream>

namespace scalide {

namespace {

// Code for the marked instructions: $d is the result and $a the operand, in 32-bit registers. Each body has its own scope for declarations.
struct Body {
    DeviceOp op;
    std::string sm_80, sm_89;
};

// Implements the arithmetic of lower/formats/formats.cpp for a format with `mantissa` bits, where `shift` = 23 - mantissa. Magnitudes are
// clamped to the largest number and rounded to even at bit `shift`. Below the smallest normal number, the addition of `magic` rounds.
std::string encode_by_bits(const std::string &largest, int shift, const std::string &rebias, const std::string &smallest_normal,
                           const std::string &magic, const std::string &nan) {
    const std::string s = std::to_string(shift), half = std::to_string((1 << (shift - 1)) - 1);
    return "{ .reg .b32 %m, %n, %t, %s; .reg .f32 %f, %g; .reg .pred %p, %q;\n"
           "\tand.b32 %m, $a, 0x7fffffff; shr.u32 %s, $a, 24; and.b32 %s, %s, 0x80;\n"
           "\tsetp.gt.u32 %p, %m, 0x7f800000; min.u32 %m, %m, " +
           largest +
           ";\n"
           "\tshr.u32 %t, %m, " +
           s + "; and.b32 %t, %t, 1; add.u32 %n, %m, " + half +
           "; add.u32 %n, %n, %t;\n"
           "\tshr.u32 %n, %n, " +
           s + "; sub.u32 %n, %n, " + rebias +
           ";\n"
           "\tmov.b32 %f, %m; mov.b32 %g, " +
           magic + "; add.rn.f32 %f, %f, %g; mov.b32 %t, %f; sub.u32 %t, %t, " + magic +
           ";\n"
           "\tsetp.lt.u32 %q, %m, " +
           smallest_normal + "; selp.b32 %n, %t, %n, %q; or.b32 %n, %n, %s; selp.b32 $d, " + nan + ", %n, %p; }";
}

/// Decodes by way of a finite f16 with a different exponent bias. In E4M3, 0x7f is NaN.
const std::string e4m3_by_half = "{ .reg .b16 %h; .reg .b32 %m, %s; .reg .f32 %f; .reg .pred %p;\n"
                                 "\tand.b32 %m, $a, 0x7f; shl.b32 %s, %m, 7; cvt.u16.u32 %h, %s; cvt.f32.f16 %f, %h;\n"
                                 "\tmul.rn.f32 %f, %f, 0f43800000; mov.b32 %s, %f; setp.eq.u32 %p, %m, 0x7f;\n"
                                 "\tselp.b32 %s, 0x7ff00000, %s, %p; shl.b32 %m, $a, 24; and.b32 %m, %m, 0x80000000; or.b32 $d, %s, %m; }";

std::string encode_by_instruction(const std::string &format) {
    return "{ .reg .b16 %h; .reg .f32 %f, %z; mov.b32 %f, $a; mov.b32 %z, 0; cvt.rn.satfinite." + format +
           "x2.f32 %h, %z, %f; cvt.u32.u16 $d, %h; }";
}

const std::vector<Body> &bodies() {
    static const std::vector<Body> all = {
        {DeviceOp::e4m3_to_f32, e4m3_by_half,
         "{ .reg .b16 %h, %g; .reg .b32 %p; .reg .f32 %f; cvt.u16.u32 %h, $a; cvt.rn.f16x2.e4m3x2 %p, %h; mov.b32 {%h, %g}, %p;"
         " cvt.f32.f16 %f, %h; mov.b32 $d, %f; }"},
        {DeviceOp::f32_to_e4m3, encode_by_bits("0x43e00000", 20, "0x3c0", "0x3c800000", "0x46800000", "0x7f"),
         encode_by_instruction("e4m3")},
        {DeviceOp::f32_to_e5m2, encode_by_bits("0x47600000", 21, "0x1c0", "0x38800000", "0x43000000", "0x7f"),
         encode_by_instruction("e5m2")},
    };
    return all;
}

std::string fill(std::string text, const std::string &d, const std::string &a) {
    for (const auto &[key, value] : {std::pair<std::string, std::string>{"$d", d}, {"$a", a}}) {
        for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + value.size())) text.replace(at, 2, value);
    }
    return text;
}

std::string body_of(unsigned long mark, InstructionSet set, const std::string &line) {
    for (const Body &body : bodies()) {
        if ((device_op_mark | uint32_t(body.op)) == mark) return set == InstructionSet::sm_80 ? body.sm_80 : body.sm_89;
    }
    throw InternalError("internal error: ptx: no instruction is meant by " + line);
}

/// Rewrites an access to shared memory. Halide assumes that it begins at address 0, but from sm_90 on, the system uses the first bytes.
std::string from_block_memory(const std::string &line) {
    static const std::regex place(R"(\[(%rd\d+|\d+)(\+-?\d+)?\])");
    std::smatch match;
    internal_check(std::regex_search(line, match, place), "ptx: not understood: " + line);
    const std::string base = match[1], offset = match[2];
    if (base[0] != '%') return match.prefix().str() + "[block_memory+" + base + offset + "]" + match.suffix().str();
    return "\t{ .reg .b64 %at; mov.b64 %at, block_memory; add.s64 %at, %at, " + base + ";" + match.prefix().str() + "[%at" + offset + "]" +
           match.suffix().str() + " }";
}

} // namespace

InstructionSet instruction_set(int card) { return card >= 89 ? InstructionSet::sm_89 : InstructionSet::sm_80; }

std::string rewrite_ptx(const std::string &ptx, InstructionSet set, const std::map<std::string, int> &threads, int resident) {
    static const std::regex constant(R"(\s*mov\.b32\s+(%r\d+), (\d+);)");
    static const std::regex entry(R"(.*\.entry (\w+)\(.*)");
    static const std::regex marked(R"(\s*dp4a\.s32\.u32\s+(%r\d+), (%r\d+|-?\d+), (%r\d+|-?\d+), (%r\d+|\d+);)");
    static const std::regex rounded(R"(\b(add|sub|mul)\.(f32|f64)\b)"); // without .rn, ptxas may contract two operations to one
    std::istringstream lines(ptx);
    std::string out, name;
    std::map<std::string, unsigned long> marks; // by the register that holds the mark
    std::smatch match;
    for (std::string line; std::getline(lines, line);) {
        if (const size_t flush = line.find(".ftz"); flush != std::string::npos) line.erase(flush, 4);
        line = std::regex_replace(line, rounded, "$1.rn.$2");
        if (line.starts_with(".version")) {
            line = set == InstructionSet::sm_80 ? ".version 7.1" : ".version 8.1";
        } else if (line.starts_with(".target")) {
            line = set == InstructionSet::sm_80 ? ".target sm_80" : ".target sm_89";
        } else if (line.starts_with(".address_size")) {
            line += "\n.extern .shared .align 16 .b8 block_memory[];";
        } else if (line.find(".shared") != std::string::npos) {
            line = from_block_memory(line);
        } else if (std::regex_match(line, match, entry)) {
            name = match[1];
            marks.clear();
        } else if (line == ")" && threads.contains(name)) {
            line = ")\n.maxntid " + std::to_string(threads.at(name));
            if (resident > threads.at(name)) line += "\n.minnctapersm " + std::to_string(resident / threads.at(name));
        } else if (std::regex_match(line, match, constant)) {
            marks[match[1]] = std::stoul(match[2]);
        } else if (std::regex_match(line, match, marked)) {
            const std::string mark = match[4];
            line = "\t" + fill(body_of(mark[0] == '%' ? marks[mark] : std::stoul(mark), set, line), match[1], match[2]);
        }
        internal_check(line.find("dp4a") == std::string::npos, "ptx: not understood: " + line);
        out += line + "\n";
    }
    return out;
}

} // namespace scalide
