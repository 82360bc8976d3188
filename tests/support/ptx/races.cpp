#include "support/ptx/races.h"
#include <stdexcept>
#include <string>

namespace scalide::ptx {

namespace {

std::string name_of(const Touch &touch) {
    if (touch.block == Touch::several) return "threads of several blocks, or as a constant a thread,";
    std::string name = touch.thread == Touch::several ? "several threads" : "thread ";
    if (touch.thread != Touch::several) name += std::to_string(touch.thread);
    return name + " of block " + std::to_string(touch.block);
}

[[noreturn]] void fail(const Touch &by, const char *verb, uint64_t at, const Touch &earlier, const char *other_verb) {
    throw std::runtime_error("ptx: a race: " + name_of(by) + ' ' + verb + " byte " + std::to_string(at) + ", which " + name_of(earlier) +
                             ' ' + other_verb + " with no barrier in between");
}

} // namespace

Races::Byte &Races::byte(uint64_t at) {
    if (at / page_bytes != last_number_) {
        last_number_ = at / page_bytes;
        auto &page = pages_[last_number_];
        if (!page) page = std::make_unique<std::array<Byte, page_bytes>>();
        last_ = page.get();
    }
    return (*last_)[at % page_bytes];
}

void Races::read(uint64_t at, size_t bytes, const Touch &by) {
    for (uint64_t i = at; i < at + bytes; i++) {
        auto &[written, read] = byte(i);
        if (!written.is_before(by)) fail(by, "reads", i, written, "wrote");
        if (read.block != Touch::nobody && read.block != by.block)
            read.block = Touch::several;
        else if (read.block == by.block && read.time == by.time && read.thread != by.thread)
            read.thread = Touch::several;
        else
            read = by;
    }
}

void Races::read_constant(uint64_t at, size_t bytes, const Touch &by) {
    for (uint64_t i = at; i < at + bytes; i++) {
        auto &[written, read] = byte(i);
        if (written.block != Touch::nobody) fail(by, "reads as a constant", i, written, "wrote");
        read.block = Touch::several;
    }
}

void Races::write(uint64_t at, size_t bytes, const Touch &by) {
    for (uint64_t i = at; i < at + bytes; i++) {
        auto &[written, read] = byte(i);
        if (!written.is_before(by)) fail(by, "writes", i, written, "wrote");
        if (!read.is_before(by)) fail(by, "writes", i, read, "read");
        written = by;
    }
}

} // namespace scalide::ptx
