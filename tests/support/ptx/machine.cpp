#include "support/ptx/machine.h"
#include <algorithm>
#include <memory>
#include <stdexcept>

namespace scalide::ptx {

uint64_t Operand::raw(const Thread &thread) const {
    if (number >= 0) return thread.registers[static_cast<size_t>(number)];
    if (special < 0) return bits;
    const Block &block = *thread.block;
    const uint32_t *const triples[] = {thread.place, block.launch.threads, block.place, block.launch.blocks};
    return special == 12 ? thread.lane : triples[special / 3][special % 3];
}

namespace {

bool is_live(const Thread &thread) { return thread.state != State::ended; }

void run_until_it_stops(Thread &thread, const std::vector<Instruction> &code) {
    while (thread.state == State::runs) {
        const Instruction &instruction = code.at(thread.next++);
        const bool is_skipped =
            instruction.predicate >= 0 && (thread.registers[static_cast<size_t>(instruction.predicate)] != 0) == instruction.if_false;
        if (!is_skipped) instruction.action(thread);
    }
}

/// Lanes of a warp meet at one and the same instruction, be it a barrier (bar.sync is barrier.sync.aligned).
void check_that_they_meet(const Thread *warp, size_t lanes, const char *what) {
    const Thread *first = std::find_if(warp, warp + lanes, is_live);
    const bool meet = std::all_of(warp, warp + lanes, [&](const Thread &thread) {
        return !is_live(thread) || (thread.state == first->state && thread.next == first->next);
    });
    if (!meet) throw std::runtime_error(std::string("ptx: not all lanes of a warp reach the same ") + what);
}

/// All lanes of a warp that are left have given a value: each takes its own.
void shuffle(Thread *warp, size_t lanes) {
    std::vector<uint64_t> given;
    for (size_t lane = 0; lane < lanes; lane++) given.push_back(warp[lane].given);
    for (size_t lane = 0; lane < lanes; lane++) {
        Thread &thread = warp[lane];
        if (!is_live(thread)) continue;
        thread.set(thread.taker, static_cast<uint32_t>(thread.source < lanes ? given[thread.source] : thread.given));
        thread.state = State::runs;
    }
}

void run_warp(Thread *warp, size_t lanes, const std::vector<Instruction> &code) {
    do {
        for (size_t lane = 0; lane < lanes; lane++) run_until_it_stops(warp[lane], code);
        const bool is_shuffle = std::any_of(warp, warp + lanes, [](const Thread &thread) { return thread.state == State::at_shuffle; });
        check_that_they_meet(warp, lanes, is_shuffle ? "shuffle" : "barrier");
        if (!is_shuffle) return;
        shuffle(warp, lanes);
    } while (true);
}

void run_block(const Entry &entry, Block &block) {
    constexpr size_t warp_size = 32;
    const uint32_t *extent = block.launch.threads;
    std::vector<Thread> threads(size_t{extent[0]} * extent[1] * extent[2]);
    for (size_t i = 0; i < threads.size(); i++) {
        threads[i].registers.resize(entry.registers);
        threads[i].local.resize(entry.local_bytes);
        threads[i].block = &block;
        threads[i].lane = i % warp_size;
        threads[i].place[0] = i % extent[0], threads[i].place[1] = i / extent[0] % extent[1],
        threads[i].place[2] = i / extent[0] / extent[1];
    }
    while (std::ranges::any_of(threads, is_live)) {
        for (size_t first = 0; first < threads.size(); first += warp_size)
            run_warp(&threads[first], std::min(warp_size, threads.size() - first), entry.code);
        block.meetings++;
        for (Thread &thread : threads)
            if (is_live(thread)) thread.state = State::runs; // all of them were at the barrier
    }
}

} // namespace

void Module::run(const Entry &entry, const Launch &launch, void *const *arguments, const CheckAccess &check) {
    const size_t threads = size_t{launch.threads[0]} * launch.threads[1] * launch.threads[2];
    if (entry.most_threads > 0 && threads > entry.most_threads)
        throw std::runtime_error("ptx: " + std::to_string(threads) + " threads, .maxntid " + std::to_string(entry.most_threads));
    std::vector<unsigned char> parameters;
    for (size_t i = 0; i < entry.offset_of.size(); i++) {
        parameters.resize(entry.offset_of[i] + entry.bytes_of[i]);
        std::memcpy(parameters.data() + entry.offset_of[i], arguments[i], entry.bytes_of[i]);
    }
    Races races;
    for (uint32_t z = 0; z < launch.blocks[2]; z++)
        for (uint32_t y = 0; y < launch.blocks[1]; y++)
            for (uint32_t x = 0; x < launch.blocks[0]; x++) {
                Block block{launch, {x, y, z}, parameters, std::vector<unsigned char>(launch.shared_bytes, 0xff), check, races};
                run_block(entry, block);
            }
}

const Entry *Module::find(const std::string &name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
}

} // namespace scalide::ptx
