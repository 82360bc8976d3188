// Accesses to memory, branches, barriers and shuffles, by the PTX ISA manual.
#include "support/ptx/reading.h"

namespace scalide::ptx {

namespace {

/// `[%rd1+16]`, `[name]`.
struct Address {
    Operand base;
    int64_t offset = 0;
};

Address address_of(const std::string &text, const Text &instruction, bool is_parameter) {
    std::string base = text.substr(1, text.size() - 2);
    Address address;
    if (const size_t plus = base.find('+'); plus != std::string::npos) {
        address.offset = std::stoll(base.substr(plus + 1));
        base = base.substr(0, plus);
    }
    if (is_parameter)
        address.base.bits = instruction.naming.parameter(base);
    else
        address.base = Text::operand_of(base, instruction.naming);
    return address;
}

enum class Space : uint8_t { parameter, shared, local, global };

/// Host memory behind an address.
unsigned char *memory(Thread &thread, Space space, const Address &address, size_t bytes) {
    uint64_t at = address.base.raw(thread) + static_cast<uint64_t>(address.offset);
    if (at % bytes != 0) throw std::runtime_error("ptx: " + std::to_string(bytes) + " bytes at a place that is no multiple of them");
    if (space == Space::global) {
        thread.block->check(at, bytes);
        return reinterpret_cast<unsigned char *>(at);
    }
    std::vector<unsigned char> &own = space == Space::shared  ? thread.block->shared
                                      : space == Space::local ? thread.local
                                                              : thread.block->parameters;
    if (space == Space::shared) {
        if (at < shared_base) throw std::runtime_error("ptx: shared memory at " + std::to_string(at) + " is the system's");
        at -= shared_base;
    }
    if (at + bytes > own.size())
        throw std::runtime_error("ptx: " + std::to_string(bytes) + " bytes at " + std::to_string(at) + " of " + std::to_string(own.size()) +
                                 " shared ones");
    return own.data() + at;
}

Space space_of(const Text &text) {
    for (const auto &[word, space] :
         {std::pair{"param", Space::parameter}, {"shared", Space::shared}, {"local", Space::local}, {"global", Space::global}})
        if (text.has(word)) return space;
    refuse("space of memory");
}

Words registers_of(const std::string &text) { return text[0] == '{' ? parts_of(text) : Words{text}; }

} // namespace

Action load(const Text &text) {
    const Space space = space_of(text);
    std::vector<int> targets;
    for (const std::string &name : registers_of(text.operands.at(0))) targets.push_back(text.naming.number(name));
    return with_type(text.type(), [&](auto zero) -> Action {
        using T = decltype(zero);
        return [targets, space, address = address_of(text.operands.at(1), text, space == Space::parameter)](Thread &thread) {
            const unsigned char *from = memory(thread, space, address, sizeof(T) * targets.size());
            for (size_t i = 0; i < targets.size(); i++) {
                T value;
                std::memcpy(&value, from + i * sizeof(T), sizeof(T));
                // Signed numbers fill their register.
                std::is_signed_v<T> &&std::is_integral_v<T> ? thread.set(targets[i], static_cast<int64_t>(value))
                                                            : thread.set(targets[i], value);
            }
        };
    });
}

Action store(const Text &text) {
    const Space space = space_of(text);
    std::vector<Operand> values;
    for (const std::string &name : registers_of(text.operands.at(1))) values.push_back(Text::operand_of(name, text.naming));
    return with_type(text.type(), [&](auto zero) -> Action {
        using T = decltype(zero);
        return [values, space, address = address_of(text.operands.at(0), text, false)](Thread &thread) {
            unsigned char *to = memory(thread, space, address, sizeof(T) * values.size());
            for (size_t i = 0; i < values.size(); i++) {
                const T value = values[i].get<T>(thread);
                std::memcpy(to + i * sizeof(T), &value, sizeof(T));
            }
        };
    });
}

Action branch(const Text &text) {
    return [place = text.naming.place_of_label(text.operands.at(0))](Thread &thread) { thread.next = *place; };
}

Action wait(const Text &) {
    return [](Thread &thread) { thread.state = State::at_barrier; };
}

Action leave(const Text &) {
    return [](Thread &thread) { thread.state = State::ended; };
}

/// From the lane that the third operand says, in the whole warp.
Action shuffle(const Text &text) {
    if (!text.has("idx") && !text.has("bfly") && !text.has("down")) refuse("shuffle");
    const std::string target = text.operands.at(0).substr(0, text.operands.at(0).find('|'));
    return [d = text.naming.number(target), a = text[1], b = text[2], c = text[3], is_xor = text.has("bfly"),
            is_down = text.has("down")](Thread &thread) {
        if ((c.get<uint32_t>(thread) & 0x1f) != 31) throw std::runtime_error("ptx: a shuffle within a part of a warp");
        const uint32_t lane = b.get<uint32_t>(thread) & 31;
        thread.given = a.get<uint32_t>(thread);
        thread.taker = d;
        thread.source = is_xor ? thread.lane ^ lane : !is_down ? lane : thread.lane + lane < 32 ? thread.lane + lane : thread.lane;
        thread.state = State::at_shuffle;
    };
}

} // namespace scalide::ptx
