#include "frontend/tracer.h"
#include "ir/words.h"
#include "transforms/analysis/passes.h"
#include <algorithm>

namespace scalide {

namespace {

/// The tensors with respect to which a loss is differentiated.
class GradientOperands {
public:
    GradientOperands(const Tracer &tracer, ValueId loss) : tracer_(tracer), loss_(loss), is_read_(read_by_loss()) {}

    /// Returns the value of w that the loss was computed from. A State that was assigned since has several values.
    ValueId value_of(const Tensor &w, UnusedTensors unused) const {
        check_float(w.value());
        if (is_read_[w.value()]) return w.value();
        const std::vector<Assignment> earlier = tracer_.assignments_of(w);
        for (auto each = earlier.rbegin(); each != earlier.rend(); ++each)
            if (is_read_[each->value]) return each->value;
        if (unused == UnusedTensors::refused) refuse_unused(w.value(), earlier);
        return w.value();
    }

private:
    const Program &program() const { return tracer_.program(); }

    std::vector<bool> read_by_loss() const {
        std::vector<bool> is_read(program().values.size(), false);
        is_read[loss_] = true;
        mark_sources(program(), is_read);
        return is_read;
    }

    void check_float(ValueId value) const {
        const Type &type = program().type(value);
        if (is_float(type.dtype)) return;
        throw UserError({{},
                         "grad",
                         "must be with respect to floats",
                         name_of(value) + " of type " + to_string(type),
                         "Leave it out, or differentiate with respect to a float"});
    }

    [[noreturn]] void refuse_unused(ValueId value, const std::vector<Assignment> &assignments) const {
        const bool is_assigned = assignments.size() > 1;
        const Location where = is_assigned ? assignments.back().where : place_of(value);
        const std::string name = assignments.empty() ? name_of(value) : name_of(assignments.front().value);
        std::string tensor = name;
        if (where.line > 0) tensor += (is_assigned ? " (assigned in " : " (from ") + to_string(where) + ")";
        const Location origin = place_of(loss_);
        const std::string loss = "'" + program().value_name(loss_) + "'" + (origin.line > 0 ? " (from " + to_string(origin) + ")" : "");
        throw UserError(statement({}, "grad: the loss " + loss + " does not depend on " + tensor,
                                  "Compute the loss from this tensor, leave it out, or write grad(loss, w, allow_unused) for zeros"));
    }

    const Argument *argument_of(ValueId value) const {
        const auto found = std::ranges::find(program().arguments, value, &Argument::value);
        return found == program().arguments.end() ? nullptr : &*found;
    }

    std::string name_of(ValueId value) const {
        const std::string &name = program().value_name(value);
        return argument_of(value) ? subject_of(program().name, name) : "'" + name + "'";
    }

    /// Returns the line that declared an argument or computed a value.
    Location place_of(ValueId value) const {
        if (const Argument *argument = argument_of(value)) return argument->location;
        for (const Node &node : program().nodes)
            if (std::ranges::count(node.results, value)) return node.location;
        return {};
    }

    const Tracer &tracer_;
    ValueId loss_;
    std::vector<bool> is_read_;
};

} // namespace

std::vector<Tensor> grad(const Tensor &loss, const std::vector<Tensor> &ws, UnusedTensors unused, const std::source_location &where) {
    return at(where, [&] {
        Tracer &tracer = Tracer::current();
        const GradientOperands operands(tracer, loss.value());
        std::vector<ValueId> wrt;
        for (const Tensor &w : ws) wrt.push_back(operands.value_of(w, unused));
        std::vector<Tensor> gradients;
        for (const ValueId value : append_gradient(tracer.program(), tracer.builder().rulebook(), loss.value(), wrt))
            gradients.emplace_back(value);
        return gradients;
    });
}

Tensor grad(const Tensor &loss, const Tensor &w, UnusedTensors unused, const std::source_location &where) {
    return grad(loss, std::vector<Tensor>{w}, unused, where)[0];
}

} // namespace scalide
