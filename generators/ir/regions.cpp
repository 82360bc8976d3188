#include "ir/regions.h"
#include "ir/text.h"
#include "ir/words.h"
#include <algorithm>
#include <array>

namespace scalide {

namespace {

constexpr int many = 1000000;

int none(const Node &) { return 0; }
int one(const Node &) { return 1; }
int count(const Node &node) { return has_flag(node, "count"); }
int bounds(const Node &node) { return node.attributes.contains("lower") ? 0 : 2; }

const RegionKind kinds[] = {
    {"scan", 1, 1, true, count, {"length", "reverse", "count", "unroll", "remat"}},
    {"map", 1, 1, true, none, {"length", "unroll", "remat"}},
    {"fori", 1, 1, true, bounds, {"lower", "upper", "unroll", "remat"}},
    {"while", 2, 2, true, none, {"max_steps"}},
    {"cond", 2, 2, false, one, {}},
    {"switch", 1, many, false, one, {}},
    {"straight", 1, 1, false, none, {}},
};

/// The checks of one node.
class RegionCheck {
public:
    RegionCheck(const Program &program, const Node &node) : program_(program), node_(node), kind_(*find_region_kind(node.op)) {}

    std::vector<Type> run() const {
        check_region_count();
        check_attributes();
        for (const Region &region : node_.regions) check_region(*region);
        check_leading();
        if (node_.op == "while") check_test();
        if (!kind_.is_loop) return branch_types();
        check_steps();
        return loop_types();
    }

private:
    const Program &body() const { return *node_.regions.back(); }
    Type type(size_t operand) const { return program_.type(node_.operands[operand]); }
    [[noreturn]] void refuse(const std::string &field, const std::string &requirement, const std::string &got,
                             const std::string &way_out = "", const Location &where = {}) const {
        throw UserError({where.line > 0 ? where : node_.location, subject_of(node_.op, field), requirement, got, way_out});
    }
    std::string named(const Program &region, const Argument &argument) const {
        return name_to_string(region.value_name(argument.value)) + ": " + to_string(region.type(argument.value));
    }

    void check_region_count() const {
        const int got = static_cast<int>(node_.regions.size());
        if (got >= kind_.least_regions && got <= kind_.most_regions) return;
        const std::string least = std::to_string(kind_.least_regions);
        refuse("regions", "must be " + (kind_.most_regions == many ? "at least " + least : least), std::to_string(got),
               "Write the regions after 'with'");
    }
    void check_attributes() const {
        for (const auto &[name, attribute] : node_.attributes) {
            if (std::ranges::count(kind_.attributes, name) > 0) continue;
            std::string known;
            for (const std::string_view each : kind_.attributes) known += (known.empty() ? "" : ", ") + std::string(each);
            throw UserError(unknown_name(node_.location, "attribute", node_.op + "." + name, known.empty() ? "" : "Use one of: " + known));
        }
        const bool needs_length = node_.op == "map" || (node_.op == "scan" && !has_flag(node_, "count"));
        for (const std::string name : {"length", "lower", "upper", "max_steps"}) {
            const auto found = node_.attributes.find(name);
            const bool is_there = found != node_.attributes.end();
            if (is_there && found->second.kind != Attribute::Kind::integer) refuse(name, "must be an extent", to_string(found->second));
            if (is_there && name == "max_steps" && !found->second.integer.is_static())
                refuse(name, "must be a number", to_string(found->second));
            if (!is_there && name == "length" && needs_length) refuse(name, "must be the number of steps", "nothing", "Add {length: ..}");
        }
        if (node_.op == "fori" && node_.attributes.contains("lower") != node_.attributes.contains("upper"))
            refuse("lower", "must have a bound 'upper', and the other way round", to_string(node_.attributes), "Write both, or neither");
        for (const std::string name : {"count", "reverse", "unroll", "remat"}) {
            const auto found = node_.attributes.find(name);
            const bool is_flag = found == node_.attributes.end() || found->second.word == "true" || found->second.word == "false";
            if (!is_flag) refuse(name, "must be true or false", to_string(found->second));
        }
    }
    /// Checks what a region is, and that the operands fit.
    void check_region(const Program &region) const {
        size_t operand = static_cast<size_t>(kind_.leading_operands(node_));
        for (const Argument &argument : region.arguments) {
            check_argument(region, argument);
            if (argument.supply == Supply::step) continue;
            if (operand < node_.operands.size()) check_operand(region, argument, operand);
            operand++;
        }
        if (operand != node_.operands.size())
            refuse("operands", "must be as many as " + name_to_string(region.name) + " needs, " + std::to_string(operand),
                   std::to_string(node_.operands.size()));
        bool comes_last = false;
        int last = -1;
        for (const Result &result : region.results) {
            if (result.argument >= 0 && (comes_last || result.argument < last))
                refuse("results",
                       "the inout arguments of " + name_to_string(region.name) + " must come first, in the order of the arguments",
                       name_to_string(result.name) + " after others");
            comes_last = comes_last || result.argument < 0;
            last = result.argument;
        }
    }
    void check_argument(const Program &region, const Argument &argument) const {
        const auto fail = [&](const std::string &requirement) {
            refuse(region.value_name(argument.value), requirement, named(region, argument), "", argument.location);
        };
        const bool is_body = kind_.is_loop && &region == &body(), is_step = argument.supply == Supply::step;
        if (argument.scaled || argument.part != ArrayPart()) fail("an argument of a region must be a whole array without a scale");
        if (argument.inout && argument.supply != Supply::run)
            fail("must be inout or " + std::string(is_step ? "step" : "each") + ", not both");
        const bool may_overwrite = (is_body && node_.op != "map") || node_.op == "straight";
        if (argument.inout && !may_overwrite) fail("must not be inout, because only loops have carries");
        const bool has_elements = is_body && (node_.op == "scan" || node_.op == "map");
        if (argument.supply == Supply::each && !has_elements) fail("must not be each, because only scan and map have elements");
        if (is_step && (!is_body || node_.op == "while")) fail("must not be step, because only scan, map and fori number their steps");
        if (is_step && region.type(argument.value) != Type{Dtype::i32, {}}) fail("must be i32[], because it is the number of the step");
    }
    void check_operand(const Program &region, const Argument &argument, size_t operand) const {
        const Type own_type = region.type(argument.value);
        const Type expected = argument.supply == Supply::each ? stacked(own_type, length()) : own_type;
        if (is_unknown(type(operand)) || type(operand) == expected) return;
        const std::string own = name_to_string(program_.value_name(node_.operands[operand]));
        refuse("operands", own + " must be " + to_string(expected) + ", for " + region.value_name(argument.value), to_string(type(operand)),
               "", node_.location);
    }
    void check_leading() const {
        const bool is_cond = node_.op == "cond";
        const Type expected{is_cond ? Dtype::boolean : Dtype::i32, {}};
        for (int i = 0; i < kind_.leading_operands(node_); i++)
            if (type(static_cast<size_t>(i)) != expected)
                refuse("operands", "number " + std::to_string(i) + " must be " + to_string(expected),
                       to_string(type(static_cast<size_t>(i))));
    }
    void check_test() const {
        const Program &test = *node_.regions[0];
        const bool fits = test.results.size() == 1 && test.type(test.results[0].value) == Type{Dtype::boolean, {}};
        if (fits) return;
        const size_t count = test.results.size();
        refuse(test.name, "must have one result, bool[]",
               count == 1 ? to_string(test.type(test.results[0].value)) : std::to_string(count) + " results");
    }
    Extent length() const { return node_.attributes.contains("length") ? node_.attributes.at("length").integer : Extent(0); }

    /// With `count` and no length, nothing bounds the number of the steps.
    void check_steps() const {
        const bool has_length = node_.op != "scan" || node_.attributes.contains("length");
        const bool has_elements = std::ranges::any_of(body().arguments, [](const Argument &a) { return a.supply == Supply::each; });
        if (!has_length && has_elements) refuse("length", "must be the number of elements", "nothing", "Add {length: ..}");
        if (length().is_static() && length().value() < 0) refuse("length", "must be at least 0", to_string(length()));
    }
    std::vector<Type> loop_types() const {
        const bool has_stacks = node_.attributes.contains("length");
        std::vector<Type> types;
        for (const Result &result : body().results) {
            types.push_back(body().type(result.value));
            if (result.argument >= 0) continue;
            if (!has_stacks) refuse("results", "every result must be the new value of an inout argument", name_to_string(result.name));
            types.back() = stacked(types.back(), length());
        }
        return types;
    }
    std::vector<Type> branch_types() const {
        const auto types_of = [](const Program &branch) {
            std::vector<Type> types;
            for (const Result &result : branch.results) types.push_back(branch.type(result.value));
            return types;
        };
        const auto words = [](const std::vector<Type> &types) {
            std::string text;
            for (const Type &type : types) text += (text.empty() ? "" : ", ") + to_string(type);
            return text;
        };
        const std::vector<Type> first = types_of(*node_.regions[0]);
        for (const Region &branch : node_.regions)
            if (types_of(*branch) != first)
                refuse(branch->name, "must have the result types of " + name_to_string(node_.regions[0]->name) + ", " + words(first),
                       words(types_of(*branch)), "Convert the results to the same types");
        return first;
    }

    const Program &program_;
    const Node &node_;
    const RegionKind &kind_;
};

} // namespace

const RegionKind *find_region_kind(std::string_view op) {
    const auto *found = std::ranges::find(kinds, op, &RegionKind::op);
    return found == std::end(kinds) ? nullptr : found;
}

LoopView::LoopView(const Node &node) : leading(find_region_kind(node.op)->leading_operands(node)) {
    const Program &body = *node.regions.back();
    int operand = leading;
    for (const Argument &argument : body.arguments) {
        operands.push_back(argument.supply == Supply::step ? -1 : operand++);
        carries.push_back(argument.inout ? carry_count++ : -1);
    }
}

std::optional<Extent> length_of(const Node &node) {
    const auto length = node.attributes.find("length"), lower = node.attributes.find("lower");
    if (node.op == "fori" && lower != node.attributes.end()) {
        const Extent steps = node.attributes.at("upper").integer - lower->second.integer;
        return steps.is_static() ? std::max<int64_t>(steps.value(), 0) : steps;
    }
    if (has_flag(node, "count") || length == node.attributes.end()) return {};
    return length->second.integer;
}

bool has_flag(const Node &node, const std::string &name) {
    const auto found = node.attributes.find(name);
    return found != node.attributes.end() && found->second.word == "true";
}

std::vector<Type> region_result_types(const Program &program, const Node &node) { return RegionCheck(program, node).run(); }

bool is_capture(const Argument &argument) { return !argument.inout && argument.supply != Supply::each && argument.supply != Supply::step; }

Type stacked(Type type, const Extent &length) {
    type.shape.insert(type.shape.begin(), length);
    return type;
}

size_t operand_of(const Node &node, const Program &region, size_t argument) {
    const auto first = region.arguments.begin();
    const auto steps =
        std::count_if(first, first + static_cast<ptrdiff_t>(argument), [](const Argument &each) { return each.supply == Supply::step; });
    return static_cast<size_t>(find_region_kind(node.op)->leading_operands(node)) + argument - static_cast<size_t>(steps);
}

void erase_argument(Node &node, std::vector<Program> &regions, size_t argument) {
    const auto place = static_cast<ptrdiff_t>(argument);
    if (regions.back().arguments[argument].supply != Supply::step)
        node.operands.erase(node.operands.begin() + static_cast<ptrdiff_t>(operand_of(node, regions.back(), argument)));
    for (Program &region : regions) {
        region.arguments.erase(region.arguments.begin() + place);
        for (Result &result : region.results)
            if (result.argument > static_cast<int>(argument)) result.argument--;
    }
}

bool erase_unread_arguments(Node &node, std::vector<Program> &regions) {
    std::vector<int> uses(regions.back().arguments.size(), 0);
    for (const Program &region : regions) {
        const std::vector<int> of_region = count_uses(region);
        for (size_t i = 0; i < uses.size(); i++) uses[i] += of_region[static_cast<size_t>(region.arguments[i].value)];
    }
    bool has_changed = false;
    for (size_t i = uses.size(); i-- > 0;) {
        if (uses[i] > 0 || regions.back().arguments[i].inout) continue;
        erase_argument(node, regions, i);
        has_changed = true;
    }
    return has_changed;
}

bool has_regions(const Program &program) {
    return std::ranges::any_of(program.nodes, [](const Node &node) { return !node.regions.empty(); });
}

Program open_region(const Region &region, const Program &owner) {
    Program program = *region;
    program.symbols = owner.symbols;
    program.programs = owner.programs;
    return program;
}

Region close_region(Program program) {
    program.symbols.clear();
    program.programs.clear();
    return std::make_shared<const Program>(std::move(program));
}

void rewrite_regions(Node &node, const Program &owner, const std::function<Program(Program region)> &f) {
    for (Region &region : node.regions) region = close_region(f(open_region(region, owner)));
}

Program map_regions(Program program, const std::function<Program(Program region)> &f) {
    for (Node &node : program.nodes) rewrite_regions(node, program, [&](Program region) { return f(map_regions(std::move(region), f)); });
    return program;
}

} // namespace scalide
