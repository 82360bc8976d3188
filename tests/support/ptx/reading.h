#pragma once
#include "support/ptx/machine.h"
#include <algorithm>
#include <stdexcept>

// Helpers to parse instructions. A mnemonic is opcode.modifiers.type.
namespace scalide::ptx {

using Words = std::vector<std::string>;

[[noreturn]] inline void refuse(const std::string &what) { throw std::runtime_error("this machine has no " + what); }

/// An instruction that is being parsed.
struct Text {
    const Words &words, &operands;
    const Naming &naming;

    bool has(const std::string &modifier) const { return std::ranges::find(words, modifier) != words.end(); }
    const std::string &type() const { return words.back(); }
    int target(size_t index = 0) const { return naming.number(operands.at(index)); }

    static Operand operand_of(const std::string &text, const Naming &naming) {
        static const std::map<std::string, int> special = {
            {"%tid.x", 0},   {"%tid.y", 1},   {"%tid.z", 2},    {"%ntid.x", 3},    {"%ntid.y", 4},    {"%ntid.z", 5}, {"%ctaid.x", 6},
            {"%ctaid.y", 7}, {"%ctaid.z", 8}, {"%nctaid.x", 9}, {"%nctaid.y", 10}, {"%nctaid.z", 11}, {"%laneid", 12}};
        Operand operand;
        if (const auto found = special.find(text); found != special.end())
            operand.special = found->second;
        else if (text == naming.shared)
            operand.bits = shared_base;
        else if (text[0] == '%')
            operand.number = naming.number(text);
        else if (text.starts_with("0f") || text.starts_with("0d"))
            operand.bits = std::stoull(text.substr(2), nullptr, 16);
        else if (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'))
            operand.bits = text[0] == '-' ? static_cast<uint64_t>(std::stoll(text, nullptr, 0)) : std::stoull(text, nullptr, 0);
        else if (!text.starts_with("__local_depot")) // which begins at 0
            refuse("operand " + text);
        return operand;
    }
    Operand operator[](size_t index) const { return operand_of(operands.at(index), naming); }
};

/// Calls function(T()) with the C++ type of a PTX type. `b` types are unsigned numbers.
template<typename Function>
Action with_type(const std::string &type, Function function) {
    if (type == "f32") return function(float());
    if (type == "f64") return function(double());
    if (type == "s64") return function(int64_t());
    if (type == "u64" || type == "b64") return function(uint64_t());
    if (type == "s32") return function(int32_t());
    if (type == "u32" || type == "b32") return function(uint32_t());
    if (type == "s16") return function(int16_t());
    if (type == "u16" || type == "b16") return function(uint16_t());
    if (type == "s8") return function(int8_t());
    if (type == "u8" || type == "b8") return function(uint8_t());
    if (type == "pred") return function(bool());
    refuse("type " + type);
}

/// `{%a, %b}`.
inline Words parts_of(const std::string &text) {
    Words parts(1);
    for (const char c : text.substr(1, text.size() - 2)) {
        if (c == ',')
            parts.emplace_back();
        else if (c != ' ')
            parts.back() += c;
    }
    return parts;
}

inline int bits_of(const std::string &type) { return type == "pred" ? 8 : std::stoi(type.substr(1)); }

/// Defined in memory.cpp: memory accesses, branches and barriers.
Action load(const Text &text);
Action store(const Text &text);
Action reduce_in_memory(const Text &text);
Action branch(const Text &text);
Action wait(const Text &text);
Action leave(const Text &text);
Action shuffle(const Text &text);

/// Defined in bits.cpp.
Action permute(const Text &text);
Action extract_bits(const Text &text);
Action insert_bits(const Text &text);
Action shift_pair(const Text &text);

} // namespace scalide::ptx
