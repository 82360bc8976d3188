#pragma once
#include "ir/program.h"

namespace scalide {

/// Copies a program node by node into a new one. A pass adds its own nodes instead of some copies. Values of `source` map to values of
/// `result`.
///
///     Rewriter rewriter(program);                  // copies name, attributes, symbols, sub-programs
///     rewriter.copy_arguments();
///     for (const Node &node : program.nodes)
///         if (...) rewriter.map(node.results[0], something new); else rewriter.copy(node);
///     rewriter.copy_results();
///     return rewriter.take();
class Rewriter {
public:
    explicit Rewriter(const Program &source);

    void copy_arguments();
    /// Appends a copy of `node` with mapped operands. Names, types, scope, role and location stay the same.
    void copy(const Node &node);
    void copy_results();

    /// Returns the new value of `old`. Throws InternalError if it has none yet.
    ValueId operator()(ValueId old) const;
    std::vector<ValueId> operator()(const std::vector<ValueId> &old) const;
    void map(ValueId old, ValueId fresh);
    bool is_mapped(ValueId old) const;

    const Program &source() const { return source_; }
    Program &result() { return result_; }
    Program take();

private:
    const Program &source_;
    Program result_;
    std::vector<ValueId> map_;
};

/// Removes nodes whose results are all unused. Arguments stay.
Program remove_dead_nodes(Program program);

} // namespace scalide
