#pragma once
#include "base/memory.h"
#include "context/context.h"
#include "scalide/plan.h"

namespace scalide {

/// The values of the symbols of a program before a layout has them. Most programs have few symbols, whose values need no allocation.
class SymbolTable {
public:
    explicit SymbolTable(scalide_context *context) : context_(context) {}
    SymbolTable(const SymbolTable &) = delete;
    SymbolTable &operator=(const SymbolTable &) = delete;
    ~SymbolTable() {
        if (values_ != few_) release(context_->allocator, values_);
    }

    /// Makes room for the symbols of a program, once. Writes a message if memory is lacking.
    scalide_status reserve(const scalide_program &program) {
        if (program.symbol_count > most_few)
            values_ = static_cast<int32_t *>(allocate(context_->allocator, sizeof(int32_t) * static_cast<uint64_t>(program.symbol_count)));
        if (values_) return SCALIDE_OK;
        start_message(context_) << program.name << ": out of memory: cannot allocate the table of symbols.";
        return SCALIDE_OUT_OF_MEMORY;
    }
    int32_t *values() { return values_; }
    const int32_t *values() const { return values_; }

private:
    static constexpr int32_t most_few = 16;

    scalide_context *context_;
    int32_t few_[most_few];
    int32_t *values_ = few_;
};

} // namespace scalide
