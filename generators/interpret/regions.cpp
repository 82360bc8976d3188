#include "interpret/regions.h"
#include <algorithm>

namespace scalide {

namespace {

constexpr int64_t most_steps = 10000000;

class Loop {
public:
    Loop(const Node &node, const Operation &operation, const RunRegion &run)
        : node_(node), operation_(operation), run_(run), body_(*node.regions.back()), view_(node) {
        for (size_t i = 0; i < body_.arguments.size(); i++)
            if (view_.carries[i] >= 0) carries_.push_back(operand(i));
        for (size_t r = carries_.size(); r < operation.results.size(); r++) {
            stacks_.push_back(operation.results[r]);
            stacks_.back().data.assign(static_cast<size_t>(element_count(stacks_.back().shape)), 0);
        }
    }

    std::vector<Array> take() {
        if (node_.op == "while") {
            run_while();
        } else {
            const auto [first, count] = steps();
            check_limit(count, most_steps);
            const bool is_reverse = has_flag(node_, "reverse");
            for (order_ = 0; order_ < count; order_++) run_step(first + (is_reverse ? count - 1 - order_ : order_));
        }
        std::ranges::move(stacks_, std::back_inserter(carries_));
        return std::move(carries_);
    }

private:
    const Array &operand(size_t argument) const { return *operation_.operands[static_cast<size_t>(view_.operands[argument])]; }
    int64_t leading(size_t i) const { return static_cast<int64_t>(operation_.operands[i]->data[0]); }
    int64_t integer(const std::string &name) const { return operation_.attributes.at(name).integer.value(); }

    void check_limit(int64_t steps, int64_t most) const {
        if (steps > most)
            throw UserError({node_.location, node_.op, "must have at most " + std::to_string(most) + " steps", std::to_string(steps), ""});
    }

    /// Returns the number of the first element, and the number of steps.
    std::pair<int64_t, int64_t> steps() const {
        if (node_.op == "fori") {
            const bool is_static = view_.leading == 0;
            const int64_t lower = is_static ? integer("lower") : leading(0), upper = is_static ? integer("upper") : leading(1);
            return {lower, std::max<int64_t>(upper - lower, 0)};
        }
        const int64_t length = node_.attributes.contains("length") ? integer("length") : most_steps + 1;
        return {0, view_.leading == 0 ? length : std::clamp<int64_t>(leading(0), 0, length)};
    }

    std::vector<Array> run_region(const Program &region, int64_t step) const {
        std::vector<Array> made;
        made.reserve(region.arguments.size());
        std::vector<const Array *> inputs;
        for (size_t i = 0; i < region.arguments.size(); i++) {
            const Supply supply = body_.arguments[i].supply;
            if (supply == Supply::step) made.push_back({Dtype::i32, {}, {static_cast<double>(step)}});
            if (supply == Supply::each) made.push_back(element(operand(i), step));
            const bool is_made = supply == Supply::step || supply == Supply::each;
            inputs.push_back(is_made                 ? &made.back()
                             : view_.carries[i] >= 0 ? &carries_[static_cast<size_t>(view_.carries[i])]
                                                     : &operand(i));
        }
        return run_(region, inputs, order_);
    }

    void run_step(int64_t step) {
        std::vector<Array> results = run_region(body_, step);
        for (size_t i = 0; i < stacks_.size(); i++) put(results[carries_.size() + i], step, stacks_[i]);
        results.resize(carries_.size());
        carries_ = std::move(results);
    }

    void run_while() {
        const int64_t most = node_.attributes.contains("max_steps") ? integer("max_steps") : most_steps;
        for (; run_region(*node_.regions[0], order_)[0].data[0] != 0; order_++) {
            check_limit(order_ + 1, most);
            run_step(order_);
        }
    }

    static Array element(const Array &array, int64_t step) {
        Array one{array.dtype, {array.shape.begin() + 1, array.shape.end()}, {}};
        const int64_t count = element_count(one.shape), first = step * count;
        one.data.assign(array.data.begin() + first, array.data.begin() + first + count);
        if (!array.error.empty()) one.error.assign(array.error.begin() + first, array.error.begin() + first + count);
        return one;
    }

    static void put(const Array &one, int64_t step, Array &stack) {
        const auto first = static_cast<std::ptrdiff_t>(static_cast<size_t>(step) * one.data.size());
        std::ranges::copy(one.data, stack.data.begin() + first);
        if (one.error.empty()) return;
        stack.error.resize(stack.data.size());
        std::ranges::copy(one.error, stack.error.begin() + first);
    }

    const Node &node_;
    const Operation &operation_;
    const RunRegion &run_;
    const Program &body_;
    LoopView view_;
    std::vector<Array> carries_, stacks_;
    int64_t order_ = 0; ///< the number of the step, in the order of the run
};

} // namespace

std::vector<Array> run_regions(const Node &node, const Operation &operation, const RunRegion &run) {
    if (find_region_kind(node.op)->is_loop) return Loop(node, operation, run).take();
    if (node.op == "straight") return run(*node.regions[0], operation.operands, -1);
    const auto last = static_cast<double>(node.regions.size()) - 1;
    const double selector = operation.operands[0]->data[0];
    const double number = node.op == "cond" ? (selector != 0 ? 0 : 1) : std::clamp(selector, 0.0, last);
    return run(*node.regions[static_cast<size_t>(number)], {operation.operands.begin() + 1, operation.operands.end()}, -1);
}

} // namespace scalide
