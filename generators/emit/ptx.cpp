#include "emit/ptx.h"
#include "emit/device_functions.h"
#include "expr/error.h"
#include "lower/halide/device_ops.h"
#include <regex>
#include <sstream>

namespace scalide {

namespace {

std::string body_of(unsigned long mark, InstructionSet set, const std::string &line) {
    for (const DeviceFunction &function : device_functions()) {
        if ((device_op_mark | uint32_t(function.op)) == mark) return set == InstructionSet::sm_80 ? function.sm_80 : function.sm_89;
    }
    throw InternalError("internal error: ptx: no instruction is meant by " + line);
}

/// Conversions whose results are the halves or bytes of one word become one instruction for two. LLVM packs them by prmt.
class PairedConversions {
public:
    explicit PairedConversions(InstructionSet set) : set_(set) {}

    /// To be called for each line that is no conversion. Forgets what the line may change.
    void pass(const std::string &line) {
        if (known_.empty()) return;
        static const std::regex changed(R"(\s*\S+\s+(%r\d+), .*)"), label(R"(\$\w+:)");
        std::smatch match;
        if (std::regex_match(line, label)) known_.clear();
        if (std::regex_match(line, match, changed))
            std::erase_if(known_, [&](const auto &entry) { return entry.first == match[1] || entry.second.operand == match[1]; });
    }

    void add(DeviceOp op, const std::string &result, const std::string &operand) {
        std::erase_if(known_, [&](const auto &entry) { return entry.second.operand == result; });
        known_[result] = {op, operand};
    }

    /// Returns the instruction for a line that decodes a BF16 again: it converts to the upper half. Empty if the line does not.
    std::string rounded(const std::string &line) const {
        static const std::regex decodes(R"(\s*shl\.b32\s+(%r\d+), (%r\d+), 16;)");
        std::smatch match;
        if (known_.empty() || !std::regex_match(line, match, decodes)) return "";
        const auto code = known_.find(match[2]);
        if (code == known_.end() || code->second.op != DeviceOp::f32_to_bf16) return "";
        return "\t{ .reg .f32 %f, %z; mov.b32 %f, " + code->second.operand + "; mov.b32 %z, 0; cvt.rn.bf16x2.f32 " + match[1].str() +
               ", %f, %z; }";
    }

    /// Returns the instruction for a line that packs two results. Empty if it does not.
    std::string packed(const std::string &line) const {
        static const std::regex packs(R"(\s*prmt\.b32\s+(%r\d+), (%r\d+), (%r\d+), (0x5410|0x3340)U;)");
        std::smatch match;
        if (known_.empty() || !std::regex_match(line, match, packs)) return "";
        const auto low = known_.find(match[2]), high = known_.find(match[3]);
        if (low == known_.end() || high == known_.end() || low->second.op != high->second.op) return "";
        const std::string instruction = pair_of(low->second.op, match[4] == "0x5410" ? 16 : 8);
        if (instruction.empty()) return "";
        return "\t{ .reg .f32 %f, %g; mov.b32 %f, " + low->second.operand + "; mov.b32 %g, " + high->second.operand + "; " +
               (match[4] == "0x5410" ? instruction + " " + match[1].str() + ", %g, %f; }"
                                     : ".reg .b16 %h; " + instruction + " %h, %g, %f; cvt.u32.u16 " + match[1].str() + ", %h; }");
    }

private:
    struct Conversion {
        DeviceOp op;
        std::string operand;
    };

    std::string pair_of(DeviceOp op, int bits) const {
        if (op == DeviceOp::f32_to_bf16 && bits == 16) return "cvt.rn.bf16x2.f32";
        if (op == DeviceOp::f32_to_f16 && bits == 16) return "cvt.rn.f16x2.f32";
        if (set_ == InstructionSet::sm_80 || bits != 8) return "";
        if (op == DeviceOp::f32_to_e4m3) return "cvt.rn.satfinite.e4m3x2.f32";
        return op == DeviceOp::f32_to_e5m2 ? "cvt.rn.satfinite.e5m2x2.f32" : "";
    }

    InstructionSet set_;
    std::map<std::string, Conversion> known_; ///< by the register of the result
};

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

/// Rewrites the lines of a module, one after the other.
class Rewriter {
public:
    Rewriter(InstructionSet set, const std::map<std::string, int> &threads, int resident)
        : set_(set), threads_(threads), resident_(resident), conversions_(set) {}

    std::string rewritten(std::string line) {
        static const std::regex rounded(R"(\b(add|sub|mul)\.(f32|f64)\b)"); // without .rn, ptxas may contract two operations to one
        std::string packed = conversions_.packed(line);
        if (packed.empty()) packed = conversions_.rounded(line);
        conversions_.pass(line);
        if (const size_t flush = line.find(".ftz"); flush != std::string::npos) line.erase(flush, 4);
        line = std::regex_replace(line, rounded, "$1.rn.$2");
        for (const auto rewrite : {&Rewriter::head, &Rewriter::entry, &Rewriter::device_op})
            if (const std::string other = (this->*rewrite)(line); !other.empty()) return other;
        return packed.empty() ? line : packed;
    }

private:
    // Each function returns the line that replaces this one, or an empty string.

    std::string head(const std::string &line) {
        const bool is_old = set_ == InstructionSet::sm_80;
        if (line.starts_with(".version")) return is_old ? ".version 7.1" : ".version 8.1";
        if (line.starts_with(".target")) return is_old ? ".target sm_80" : ".target sm_89";
        if (line.starts_with(".address_size")) return line + "\n.extern .shared .align 16 .b8 block_memory[];";
        return line.find(".shared") != std::string::npos ? from_block_memory(line) : "";
    }
    /// The name of a kernel, or the end of its parameters, behind which the limits stand.
    std::string entry(const std::string &line) {
        static const std::regex begin(R"(.*\.entry (\w+)\(.*)");
        std::smatch match;
        if (std::regex_match(line, match, begin)) {
            name_ = match[1];
            marks_.clear();
            return line;
        }
        if (line != ")" || !threads_.contains(name_)) return "";
        const int threads = threads_.at(name_);
        return line + "\n.maxntid " + std::to_string(threads) +
               (resident_ > threads ? "\n.minnctapersm " + std::to_string(resident_ / threads) : "");
    }
    /// The constant that marks a device op, or the op itself.
    std::string device_op(const std::string &line) {
        static const std::regex constant(R"(\s*mov\.b32\s+(%r\d+), (\d+);)");
        static const std::regex marked(R"(\s*dp4a\.s32\.u32\s+(%r\d+), (%r\d+|-?\d+), (%r\d+|-?\d+), (%r\d+|\d+);)");
        std::smatch match;
        if (std::regex_match(line, match, constant)) {
            marks_[match[1]] = std::stoul(match[2]);
            return line;
        }
        if (!std::regex_match(line, match, marked)) return "";
        const std::string name_of_mark = match[4], result = match[1], operand = match[2];
        const unsigned long mark = name_of_mark[0] == '%' ? marks_[name_of_mark] : std::stoul(name_of_mark);
        conversions_.add(DeviceOp(mark - device_op_mark), result, operand);
        return "\t" + with_registers(body_of(mark, set_, line), result, operand);
    }

    InstructionSet set_;
    const std::map<std::string, int> &threads_;
    int resident_;
    std::string name_;
    std::map<std::string, unsigned long> marks_; ///< by the register that holds the mark
    PairedConversions conversions_;
};

} // namespace

InstructionSet instruction_set(int card) { return card >= 89 ? InstructionSet::sm_89 : InstructionSet::sm_80; }

std::string rewrite_ptx(const std::string &ptx, InstructionSet set, const std::map<std::string, int> &threads, int resident) {
    Rewriter rewriter(set, threads, resident);
    std::istringstream lines(ptx);
    std::string out;
    for (std::string line; std::getline(lines, line);) {
        const std::string rewritten = rewriter.rewritten(line);
        internal_check(rewritten.find("dp4a") == std::string::npos, "ptx: not understood: " + rewritten);
        out += rewritten + "\n";
    }
    return out;
}

} // namespace scalide
