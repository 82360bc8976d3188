// Accesses to memory, branches, barriers and shuffles, by the PTX ISA manual.
#include "support/ptx/reading.h"
#include <algorithm>

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

/// What an address means to a thread.
struct Place {
    uint64_t at;           ///< in its space
    unsigned char *memory; ///< on the host
    Races *races;          ///< nullptr: private memory
};

Place place_of(Thread &thread, Space space, const Address &address, size_t bytes) {
    Block &block = *thread.block;
    uint64_t at = address.base.raw(thread) + static_cast<uint64_t>(address.offset);
    if (at % bytes != 0) throw std::runtime_error("ptx: " + std::to_string(bytes) + " bytes at a place that is no multiple of them");
    if (space == Space::global) {
        block.check(at, bytes);
        return {at, reinterpret_cast<unsigned char *>(at), &block.races};
    }
    std::vector<unsigned char> &own = space == Space::shared ? block.shared : space == Space::local ? thread.local : block.parameters;
    if (space == Space::shared) {
        if (at < shared_base) throw std::runtime_error("ptx: shared memory at " + std::to_string(at) + " is the system's");
        at -= shared_base;
    }
    if (at + bytes > own.size())
        throw std::runtime_error("ptx: " + std::to_string(bytes) + " bytes at " + std::to_string(at) + " of " + std::to_string(own.size()) +
                                 " shared ones");
    return {at, own.data() + at, space == Space::shared ? &block.shared_races : nullptr};
}

/// This thread, now.
Touch touch_of(const Thread &thread) {
    const Block &block = *thread.block;
    const uint32_t *blocks = block.launch.blocks, *threads = block.launch.threads;
    return {block.place[0] + blocks[0] * (block.place[1] + blocks[1] * block.place[2]),
            thread.place[0] + threads[0] * (thread.place[1] + threads[1] * thread.place[2]), block.meetings};
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
        return [targets, space, is_constant = text.has("nc"),
                address = address_of(text.operands.at(1), text, space == Space::parameter)](Thread &thread) {
            const size_t bytes = sizeof(T) * targets.size();
            const auto [at, from, races] = place_of(thread, space, address, bytes);
            if (races) is_constant ? races->read_constant(at, bytes, touch_of(thread)) : races->read(at, bytes, touch_of(thread));
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
            const size_t bytes = sizeof(T) * values.size();
            const auto [at, to, races] = place_of(thread, space, address, bytes);
            T written[16 / sizeof(T)];
            for (size_t i = 0; i < values.size(); i++) written[i] = values[i].get<T>(thread);
            if (races && std::memcmp(to, written, bytes) != 0) races->write(at, bytes, touch_of(thread));
            std::memcpy(to, written, bytes);
        };
    });
}

/// Atomic, so it needs no order among threads, and is no race.
Action reduce_in_memory(const Text &text) {
    if (!text.has("max") || text.type() != "u32" || space_of(text) != Space::global) refuse("atomic reduction");
    return [value = Text::operand_of(text.operands.at(1), text.naming),
            address = address_of(text.operands.at(0), text, false)](Thread &thread) {
        unsigned char *memory = place_of(thread, Space::global, address, sizeof(uint32_t)).memory;
        uint32_t largest;
        std::memcpy(&largest, memory, sizeof(largest));
        largest = std::max(largest, value.get<uint32_t>(thread));
        std::memcpy(memory, &largest, sizeof(largest));
    };
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
