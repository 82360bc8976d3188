// Before the first run of a binding, the ranks of a group compare what they run. Otherwise a rank with another program or other arrays
// would wait for ever, or compute with wrong data.
#include "base/memory.h"
#include "run/collectives.h"
#include <cstring>

namespace scalide {

namespace {

constexpr uint64_t unit_bytes = 64; // of messages, see scalide_transport

/// What a rank runs. Texts are cut.
struct ProgramRecord {
    char program[128], numerics[192], hash[112];
    int64_t collectives, arrays; ///< of the group
};
static_assert(sizeof(ProgramRecord) % unit_bytes == 0, "a record is a message");

/// An array of a collective.
struct ArrayRecord {
    int32_t kind, dtype;
    int64_t elements, chunk; ///< of the whole array, and in bytes
};

/// Memory for the records of all ranks, after the records of this rank.
template<typename Record>
class Records {
public:
    Records(scalide_context *context, const Group &group, uint64_t count)
        : context_(context), group_(group), bytes_(round_up(count * sizeof(Record), unit_bytes)) {
        const uint64_t all = bytes_ * (1 + static_cast<uint64_t>(group.transport.ranks));
        memory_ = static_cast<char *>(allocate(context->allocator, all));
        if (memory_)
            std::memset(memory_, 0, bytes_);
        else
            fail_run(context, SCALIDE_OUT_OF_MEMORY, "out of memory: cannot compare the ranks.");
    }
    Records(const Records &) = delete;
    Records &operator=(const Records &) = delete;
    ~Records() { release(context_->allocator, memory_); }

    bool has_memory() const { return memory_; }
    Record *own() { return reinterpret_cast<Record *>(memory_); }
    const Record *of(int32_t rank) const { return reinterpret_cast<const Record *>(memory_ + bytes_ * (1 + static_cast<uint64_t>(rank))); }
    bool gather() {
        char message[512] = "";
        const scalide_transport &transport = group_.transport;
        return transport.all_gather(transport.self, memory_, memory_ + bytes_, bytes_, message, sizeof(message)) == 0 ||
               fail_transport(context_, group_, message);
    }

private:
    scalide_context *context_;
    const Group &group_;
    uint64_t bytes_;
    char *memory_;
};

/// The comparison of the ranks of one group.
class Comparison {
public:
    Comparison(scalide_binding &binding, int32_t symbol) : binding_(binding), symbol_(symbol), group_(group_of(binding, symbol)) {}

    /// False: the run has failed. `differs()`: on all ranks, because of a difference.
    bool run() { return compare_programs() && (arrays_ == 0 || compare_arrays()); }
    bool differs() const { return differs_; }
    const Group &group() const { return group_; }

private:
    /// Calls visit(step, collective, moved) for the arrays of the group's collectives.
    template<typename Visit>
    void for_each_moved(Visit visit) {
        const scalide_program &program = *binding_.program;
        for (int32_t step = 0; step < program.step_count; ++step) {
            const scalide_collective *collective = program.steps[step].collective;
            if (!collective || collective->group != symbol_) continue;
            for (int32_t i = 0; i < collective->count; ++i) visit(step, *collective, collective->arrays[i]);
        }
    }

    bool compare_programs() {
        Records<ProgramRecord> records(binding_.context, group_, 1);
        if (!records.has_memory()) return false;
        ProgramRecord &own = *records.own();
        Text(own.program, sizeof(own.program)) << binding_.asked->name;
        Text(own.numerics, sizeof(own.numerics)) << binding_.asked->numerics;
        Text(own.hash, sizeof(own.hash)) << binding_.asked->hash;
        int32_t last_step = -1;
        for_each_moved([&](int32_t step, const scalide_collective &, const scalide_moved &) {
            own.collectives += step != last_step;
            last_step = step;
            ++own.arrays;
        });
        arrays_ = own.arrays;
        if (!records.gather()) return false;
        const ProgramRecord &first = *records.of(0);
        for (int32_t rank = 1; rank < group_.transport.ranks; ++rank)
            if (std::memcmp(records.of(rank), &first, sizeof(first)) != 0) return fail_program(rank, *records.of(rank), first);
        return true;
    }

    bool fail_program(int32_t rank, const ProgramRecord &other, const ProgramRecord &first) {
        Text text = start();
        text << "rank " << rank;
        if (std::strcmp(other.program, first.program) != 0) {
            text << " runs the program " << other.program << ", but rank 0 runs " << first.program
                 << ". Run the same program on all ranks.";
        } else if (std::strcmp(other.numerics, first.numerics) != 0) {
            text << " runs the program with policy " << other.numerics << ", but rank 0 runs it with policy " << first.numerics
                 << ". Run the same library on all ranks.";
        } else if (std::strcmp(other.hash, first.hash) != 0) {
            text << " has a library that was built from another text or by another version than the library of rank 0 (hash " << other.hash
                 << ", not " << first.hash << "). Run the same library on all ranks.";
        } else {
            text << " exchanges " << other.arrays << " arrays in " << other.collectives << " steps, but rank 0 exchanges " << first.arrays
                 << " arrays in " << first.collectives << " steps. Bind arrays of equal shapes on all ranks.";
        }
        return fail(-1);
    }

    bool compare_arrays() {
        Records<ArrayRecord> records(binding_.context, group_, static_cast<uint64_t>(arrays_));
        if (!records.has_memory()) return false;
        ArrayRecord *own = records.own();
        for_each_moved([&](int32_t, const scalide_collective &collective, const scalide_moved &moved) {
            const int32_t whole = collective.kind == SCALIDE_EXCHANGE ? moved.from : moved.to;
            const MovedBytes bytes = bytes_of(*binding_.program, *binding_.layout, collective, moved);
            *own++ = {collective.kind, binding_.program->buffers[whole].dtype, binding_.layout->buffers[whole].elements,
                      static_cast<int64_t>(bytes.chunk)};
        });
        if (!records.gather()) return false;
        for (int32_t rank = 1; rank < group_.transport.ranks; ++rank)
            for (int64_t i = 0; i < arrays_; ++i)
                if (std::memcmp(records.of(rank) + i, records.of(0) + i, sizeof(ArrayRecord)) != 0)
                    return fail_array(rank, i, records.of(rank)[i], records.of(0)[i]);
        return true;
    }

    static void print(Text &text, const ArrayRecord &record) {
        text << (record.kind == SCALIDE_EXCHANGE ? "exchanges " : "collects ") << record.elements << ' ' << scalide_dtype_name(record.dtype)
             << " elements in chunks of " << record.chunk << " bytes";
    }

    bool fail_array(int32_t rank, int64_t index, const ArrayRecord &other, const ArrayRecord &first) {
        int32_t step = -1;
        for_each_moved([&](int32_t place, const scalide_collective &, const scalide_moved &) {
            if (index-- == 0) step = place;
        });
        Text text = start();
        print(text << "rank " << rank << ' ', other);
        print(text << ", but rank 0 ", first);
        text << ". Bind arrays of equal shapes on all ranks.";
        return fail(step);
    }

    Text start() {
        Text text(words_, sizeof(words_), Text::Use::message);
        text << "group ";
        text.name(group_.name) << ": ";
        return text;
    }

    bool fail(int32_t step) {
        binding_.current_step = step;
        differs_ = true;
        fail_run(binding_.context, SCALIDE_INVALID_ARGUMENT, words_);
        return false;
    }

    scalide_binding &binding_;
    int32_t symbol_;
    const Group &group_;
    int64_t arrays_ = 0;
    bool differs_ = false;
    char words_[sizeof(scalide_context::failure)];
};

} // namespace

bool compare_ranks(scalide_binding &binding, const Group **differing) {
    for (int32_t i = 0; i < binding.program->symbol_count; ++i) {
        if (binding.program->symbols[i].source != SCALIDE_RANKS || binding.symbols[i] == 1) continue;
        Comparison comparison(binding, i);
        if (comparison.run()) continue;
        if (comparison.differs()) *differing = &comparison.group();
        return false;
    }
    binding.is_compared = true;
    return true;
}

} // namespace scalide
