#include "rulebook/term.h"
#include <numeric>

namespace scalide {

Term make_term(Attribute constant) {
    Term term;
    term.constant = std::move(constant);
    return term;
}

Term make_term(const Program &program, ValueId node) {
    Term term;
    term.node = node;
    term.shape = program.type(node).shape;
    term.dims.resize(term.shape.size());
    std::iota(term.dims.begin(), term.dims.end(), 0);
    return term;
}

Term make_term(std::vector<Term> cases) {
    Term term;
    term.cases = std::move(cases);
    return term;
}

bool is_single(const Term &term) { return term.constant || (!term.cases && element_count(term.shape) == Extent(1)); }

} // namespace scalide
