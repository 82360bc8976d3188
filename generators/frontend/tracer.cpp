#include "frontend/tracer.h"
#include "ir/words.h"
#include <algorithm>

namespace scalide {

namespace {
thread_local Tracer *innermost = nullptr;
thread_local int last_number = 0;
} // namespace

Tracer::Tracer(const Rulebook &rulebook, const std::string &program_name)
    : builder_(rulebook, program_), outer_(innermost), number_(++last_number) {
    program_.name = program_name;
    innermost = this;
}

Tracer::Tracer(Tracer &outer) : Tracer(outer.builder_.rulebook(), outer.program_.name + "." + std::to_string(last_number + 1)) {
    is_region_ = true;
    program_.symbols = outer.program_.symbols;
}

Tracer::~Tracer() { innermost = outer_; }

Tracer &Tracer::current() {
    if (!innermost) {
        throw UserError(statement({}, "tensors can be used only inside a generator",
                                  "Derive from scalide::Generator and write the program in generate()"));
    }
    return *innermost;
}

bool Tracer::is_placed() { return innermost && innermost->location_.line > 0; }

void Tracer::set_scope(const std::string &scope) {
    scope_ = scope;
    stamp();
}

void Tracer::set_location(const Location &location) {
    location_ = location;
    stamp();
}

void Tracer::stamp() { builder_.stamp_like(stamped("")); }

Node Tracer::stamped(const std::string &op, Attributes attributes) const {
    return {.op = op, .attributes = std::move(attributes), .scope = scope_, .location = location_};
}

Tensor Tracer::add_argument(const std::string &name, const Type &type, const Argument &like) {
    refuse_in_region("declare an input or a state", "Declare it before the loop or the branch");
    for (const Argument &argument : program_.arguments) {
        if (program_.value_name(argument.value) == name) {
            throw UserError(
                statement(like.location, "two arguments have the name " + subject_of(program_.name, name), "Rename one of them"));
        }
    }
    for (const Extent &extent : type.shape) {
        for (const std::string &symbol : extent.symbols()) {
            const bool known = std::ranges::any_of(program_.symbols, [&](const Symbol &s) { return s.name == symbol; });
            if (!known) program_.symbols.push_back({symbol});
        }
    }
    Argument argument = like;
    argument.value = add_value(program_, name, type);
    program_.arguments.push_back(argument);
    return Tensor(argument.value);
}

Extent Tracer::declare_group(const std::string &name) {
    refuse_in_region("declare a group", "Declare it before the loop or the branch");
    const auto known = std::ranges::find(program_.symbols, name, &Symbol::name);
    Symbol &symbol = known == program_.symbols.end() ? program_.symbols.emplace_back(Symbol{name}) : *known;
    if (symbol.source != SymbolSource::ranks) {
        symbol.source = SymbolSource::ranks;
        symbol.minimum = std::max<int64_t>(symbol.minimum, 1);
        symbol.maximum = std::min(symbol.maximum, most_ranks);
    }
    return Extent::symbol(name);
}

std::optional<ValueId> Tracer::capture(int number, ValueId value) {
    if (!is_region_) return {};
    const std::optional<ValueId> outer = outer_->number_ == number ? value : outer_->capture(number, value);
    if (!outer) return {};
    const auto [place, is_new] = captures_.try_emplace(*outer, -1);
    if (is_new) {
        const Value &captured = outer_->program_.values[*outer];
        place->second = add_value(program_, captured.name, captured.type);
        program_.arguments.push_back({.value = place->second, .location = {}});
        captured_.push_back(*outer);
    }
    return place->second;
}

void Tracer::declare_state(Tensor &tensor) {
    tensor.state_ = tensor.value_;
    assignments_[tensor.state_] = {{tensor.value_, location_}};
}

void Tracer::refuse_in_region(const std::string &action, const std::string &way_out) const {
    if (is_region_) throw UserError(statement({}, "cannot " + action + " in the body of a loop or in a branch", way_out));
}

void Tracer::assign(Tensor &tensor, ValueId value) {
    tensor.value_ = value;
    tensor.program_ = number_;
    if (const auto state = assignments_.find(tensor.state_); state != assignments_.end()) state->second.push_back({value, location_});
}

std::vector<Assignment> Tracer::assignments_of(const Tensor &tensor) const {
    const auto found = assignments_.find(tensor.state_);
    return found == assignments_.end() ? std::vector<Assignment>() : found->second;
}

Location location_of(const std::source_location &where) { return {where.file_name(), static_cast<int>(where.line())}; }

void rethrow_at(const UserError &error, const Location &where) {
    Message message = error.message();
    if (message.location.line == 0) message.location = where;
    if (innermost && !innermost->scope().empty())
        message.way_out += (message.way_out.empty() ? "" : ". ") + ("Scope: " + innermost->scope());
    throw UserError(message);
}

Program trace_program(const std::string &name, const std::vector<std::pair<std::string, Type>> &arguments,
                      const std::function<std::vector<Tensor>(const std::vector<Tensor> &)> &function) {
    Tracer &outer = Tracer::current();
    Tracer tracer(outer.builder().rulebook(), name);
    Program &program = tracer.program();
    std::vector<Tensor> tensors;
    for (const auto &[argument, type] : arguments) tensors.push_back(tracer.add_argument(argument, type, {}));
    for (const Tensor &result : function(tensors))
        program.results.push_back({"c" + std::to_string(program.results.size()), result.value()});
    // A sub-program has no sub-programs of its own. The programs that it needs precede it.
    for (Program &inner : program.programs) outer.program().programs.push_back(std::move(inner));
    program.programs.clear();
    return std::move(program);
}

} // namespace scalide
