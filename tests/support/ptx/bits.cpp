// Bytes and bits of words, by the PTX ISA manual.
#include "support/ptx/reading.h"

namespace scalide::ptx {

/// Bytes of b:a, picked by four numbers of four bits; bit 3 copies the sign.
Action permute(const Text &text) {
    if (text.words.size() != 2) refuse("mode of prmt");
    return [d = text.target(), a = text[1], b = text[2], c = text[3]](Thread &thread) {
        const uint64_t bytes = uint64_t{b.get<uint32_t>(thread)} << 32 | a.get<uint32_t>(thread);
        const auto picks = c.get<uint32_t>(thread);
        uint32_t value = 0;
        for (int i = 0; i < 4; i++) {
            const uint32_t pick = picks >> (4 * i) & 15, byte = bytes >> (8 * (pick & 7)) & 0xff;
            value |= (pick & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << (8 * i);
        }
        thread.set(d, value);
    };
}

Action extract_bits(const Text &text) {
    return [d = text.target(), a = text[1], b = text[2], c = text[3], is_signed = text.type() == "s32"](Thread &thread) {
        const uint32_t value = a.get<uint32_t>(thread), first = b.get<uint32_t>(thread) & 0xff, count = c.get<uint32_t>(thread) & 0xff;
        const uint64_t wide = is_signed ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(value))) : value;
        const uint64_t field = first > 63 ? (is_signed && (value >> 31) ? ~uint64_t{0} : 0) : wide >> first;
        if (count == 0) return thread.set(d, 0u);
        const uint32_t bits = count > 31 ? static_cast<uint32_t>(field) : static_cast<uint32_t>(field & ((uint64_t{1} << count) - 1));
        const bool extends = is_signed && count < 32 && (bits >> (count - 1) & 1);
        thread.set(d, extends ? bits | ~((1u << count) - 1) : bits);
    };
}

Action insert_bits(const Text &text) {
    return [d = text.target(), a = text[1], b = text[2], c = text[3], e = text[4]](Thread &thread) {
        const uint32_t first = c.get<uint32_t>(thread) & 0xff, count = std::min(32u, e.get<uint32_t>(thread) & 0xff);
        const uint32_t mask = first > 31 ? 0 : static_cast<uint32_t>(((uint64_t{1} << count) - 1) << first);
        const uint32_t value = first > 31 ? 0 : a.get<uint32_t>(thread) << first;
        thread.set(d, (value & mask) | (b.get<uint32_t>(thread) & ~mask));
    };
}

/// b:a, moved by the third number modulo 32; its upper or its lower half.
Action shift_pair(const Text &text) {
    if (!text.has("wrap")) refuse("shf that clamps");
    return [d = text.target(), a = text[1], b = text[2], c = text[3], left = text.has("l")](Thread &thread) {
        const uint64_t pair = uint64_t{b.get<uint32_t>(thread)} << 32 | a.get<uint32_t>(thread);
        const uint32_t count = c.get<uint32_t>(thread) & 31;
        thread.set(d, static_cast<uint32_t>(left ? pair << count >> 32 : pair >> count));
    };
}

} // namespace scalide::ptx
