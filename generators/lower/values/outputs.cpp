#include "lower/values/outputs.h"
#include "lower/formats/formats.h"
#include <algorithm>

namespace scalide {
namespace {

Halide::Tuple undefined_words(const Program &program, const std::vector<int> &results) {
    std::vector<Halide::Expr> words;
    for (int result : results) {
        words.push_back(Halide::undef(storage_type(program.type(program.results[result].value).dtype)));
    }
    return Halide::Tuple(words);
}

Index to_index(const std::vector<Halide::Var> &vars) { return Index(vars.begin(), vars.end()); }

bool same_index(const Index &a, const Index &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto &x, const auto &y) { return Halide::Internal::equal(x, y); });
}

/// Reads an inout argument from the output that overwrites it. This is allowed only at the index that is about to be written.
Values::Reader in_place_reader(const Halide::Func &func, int component, const Index &here, Dtype dtype) {
    return [=](const Index &index) {
        internal_check(same_index(index, here), "an inout argument is read elsewhere than where its result is written");
        Halide::FuncRef word = func(buffer_order(index));
        return from_word(dtype, func.outputs() == 1 ? Halide::Expr(word) : Halide::Expr(word[component]));
    };
}

Halide::Expr refuse_read(const Index &) {
    throw InternalError("internal error: an inout argument is read outside of the loop of its result");
}

/// Returns a condition that is true for every `word`. LLVM knows this, but Halide does not.
Halide::Expr always_holds(const Halide::Expr &word) {
    const int bits = word.type().bits();
    if (bits < 32) return Halide::cast<float>(word) >= -1024.0f;
    const Halide::Type integer = Halide::Int(bits);
    return Halide::reinterpret(integer, word) >= integer.min();
}

class Output {
public:
    Output(Lowering &lowering, const std::vector<int> &results, const std::vector<Halide::Var> &vars)
        : lowering_(lowering), results_(results), func_("output_" + std::to_string(lowering.kernel.outputs.size())), vars_(vars) {}

    void add(const Joins &joins) {
        if (is_in_place() || !joins.parts.empty()) {
            assign(place(), undefined_words(program(), results_));
        }
        if (joins.parts.empty()) {
            bind_overwritten(true);
            assign(place(), words(to_index(vars_)));
            bind_overwritten(false);
        } else {
            add_parts(joins);
        }
        fix_layout(func_, type(0).shape, lowering_.kernel, reads_strides(lowering_.kernel, results_));
        const std::optional<int> joined = joins.parts.empty() ? std::nullopt : std::optional(joins.axis);
        lowering_.kernel.outputs.push_back({func_, results_, joined});
    }

private:
    const Program &program() const { return lowering_.kernel.program; }
    const Result &result(size_t i) const { return program().results[results_[i]]; }
    const Type &type(size_t i) const { return program().type(result(i).value); }

    /// The argument that a result overwrites, if the kernel reads it from the output. Otherwise -1.
    int read_in_place(int result) const {
        const int argument = program().results[result].argument;
        return argument < 0 || lowering_.kernel.inputs[argument].defined() ? -1 : argument;
    }

    bool is_in_place() const {
        return std::any_of(results_.begin(), results_.end(), [&](int result) { return read_in_place(result) >= 0; });
    }

    Halide::FuncRef place() const { return func_(buffer_order(vars_)); }

    /// Halide computes all values of a Tuple before it stores one that another reads. But Halide 21 (SplitTuples.cpp) does not look for
    /// reads in arguments of calls, such as strict operations. So a condition repeats all these reads.
    Halide::Tuple words(const Index &index) {
        Halide::Expr reads = Halide::Internal::const_true();
        for (size_t i = 0; i < results_.size() && results_.size() > 1; i++) {
            if (read_in_place(results_[i]) >= 0) reads = reads && always_holds(place()[int(i)]);
        }
        std::vector<Halide::Expr> words;
        for (size_t i = 0; i < results_.size(); i++) {
            const Halide::Expr word = to_word(type(i).dtype, lowering_.values.at(result(i).value, index));
            words.push_back(Halide::Internal::is_const_one(reads) ? word
                                                                  : Halide::select(reads, word, Halide::Internal::make_zero(word.type())));
        }
        return Halide::Tuple(words);
    }

    void add_parts(const Joins &joins) {
        Halide::Expr start = 0;
        for (size_t part = 0; part < joins.parts.size(); part++) {
            const Halide::Expr extent = lowering_.values.extent(joins.parts[part]);
            const Halide::RDom column(0, extent, func_.name() + "_part_" + std::to_string(part));
            Index index = to_index(vars_);
            index[size_t(joins.axis)] = start + column;
            for (const ValueId join : joins.values)
                lowering_.values.bind(join, [this, join, part, column, here = index, axis = size_t(joins.axis)](Index at) {
                    internal_check(same_index(at, here), "a part of a concatenation is read elsewhere than where it is written");
                    at[axis] = Halide::Expr(column);
                    return lowering_.values.at(lowering_.values.producer(join)->operands[part], at);
                });
            assign(func_(buffer_order(index)), over(column, words(index)));
            start = Halide::Internal::simplify(start + extent);
        }
        for (const ValueId join : joins.values) lowering_.values.unbind(join);
    }

    /// The inout arguments that results overwrite can be read only in the loop of these results.
    void bind_overwritten(bool is_here) {
        for (size_t i = 0; i < results_.size(); i++) {
            if (read_in_place(results_[i]) < 0) continue;
            const ValueId argument = program().arguments[result(i).argument].value;
            lowering_.values.bind(argument, is_here ? in_place_reader(func_, int(i), to_index(vars_), type(i).dtype) : refuse_read);
        }
    }

    Lowering &lowering_;
    const std::vector<int> &results_;
    Halide::Func func_;
    const std::vector<Halide::Var> &vars_;
};

} // namespace

bool reads_strides(const LoweredKernel &kernel, const std::vector<int> &results) {
    const auto overwrites = [&](int result) { return kernel.program.results[result].argument >= 0; };
    return kernel.reads_strides && std::none_of(results.begin(), results.end(), overwrites);
}

void add_output(Lowering &lowering, const std::vector<int> &results, const std::vector<Halide::Var> &vars, const Joins &joins) {
    Output(lowering, results, vars).add(joins);
}

std::vector<std::vector<int>> results_by_shape(const Program &program) {
    std::vector<std::vector<int>> groups;
    for (int r = 0; r < int(program.results.size()); r++) {
        const Extents &shape = program.type(program.results[r].value).shape;
        auto group = std::find_if(groups.begin(), groups.end(), [&](const std::vector<int> &other) {
            return program.type(program.results[other[0]].value).shape == shape;
        });
        if (group == groups.end()) {
            groups.push_back({r});
        } else {
            group->push_back(r);
        }
    }
    return groups;
}

void add_outputs_by_shape(Lowering &lowering) {
    const Program &program = lowering.kernel.program;
    for (const std::vector<int> &results : results_by_shape(program)) {
        add_output(lowering, results, axis_vars(program.type(program.results[results[0]].value).rank()));
    }
}

} // namespace scalide
