#include "tool/policy_run.h"
#include "emit/library.h"
#include "interpret/operation.h"
#include "transforms/analysis/origins.h"
#include "transforms/pipeline.h"
#include <algorithm>
#include <cmath>

namespace scalide {

namespace {

/// The scale of scaled arguments, and the size of delayed scales, in exact runs. A scale of 1 would give data the numbers of its tensor.
constexpr double exact_scale = 1.7;

/// True for a conversion to a format with fewer bits. The format of block scales has only powers of two.
bool makes_narrow(const ValueRef &value, const Node *node) {
    if (node == nullptr || node->op != "convert_element_type") return false;
    const Dtype to = value.program->type(value.value).dtype, from = value.program->type(node->operands[0]).dtype;
    return is_narrow(to) && is_float(from) && size_of(to) < size_of(from) && format_of(to).mantissa_bits > 0;
}

std::vector<double> in_order_of_tensor(std::vector<double> numbers, const TensorPlace &place) {
    if (place.order.empty()) return numbers;
    std::vector<double> moved(numbers.size());
    for (size_t i = 0; i < moved.size(); i++) moved[i] = numbers[place.order[i]];
    return moved;
}

/// An infinite limit never counts: f32 has no largest number that a policy chooses.
size_t count_saturated(const std::vector<double> &given, const std::vector<double> &made, Dtype dtype) {
    const FormatSpec &format = format_of(dtype);
    const double largest = decode(format, format.max_code);
    size_t count = 0;
    for (size_t i = 0; i < made.size(); i++) count += std::abs(made[i]) >= largest && is_beyond(format, std::abs(given[i]));
    return count;
}

/// The value before a conversion, and the factors between them: value * factor is converted, or value / factor.
struct ScaledFrom {
    ValueRef value;
    std::optional<ValueRef> factor;
    bool divides = false;
};

} // namespace

double unit_roundoff(Dtype dtype) { return dtype == Dtype::f64 ? 0 : std::ldexp(0.5, -format_of(dtype).mantissa_bits); }

std::vector<Array> PolicyInputs::for_program(const Program &with_policy) const {
    std::vector<Array> found;
    for (const Argument &argument : with_policy.arguments) {
        const std::string &name = with_policy.value_name(argument.value);
        const Type &type = with_policy.type(argument.value);
        if (argument.initial) {
            found.push_back(to_tensor(arrays.find_state(name, type, *argument.initial)));
            continue;
        }
        HostArray array = arrays.find(argument.part.array(name));
        if (argument.part.is_scale()) { // its data is the argument before it
            const Type &of_data = with_policy.type(with_policy.arguments[found.size() - 1].value);
            found.push_back({Dtype::f32, {}, {in_form(std::move(array), of_data.dtype, true).scale}});
            continue;
        }
        if (is_float(array.dtype) && is_float(type.dtype))
            array = in_form(std::move(array), type.dtype, argument.part.kind == ArrayPart::Kind::data);
        found.push_back(to_tensor(array));
    }
    return found;
}

StoredProgram stored_program(const PolicyInputs &inputs, const Policy &policy) {
    StoredProgram made;
    const auto keep = [&](const std::string &pass, const Program &program) {
        if (pass == "inline_calls") made.source = program;
        if (pass == "assign_numerics") made.assigned = program;
    };
    const CompileOptions options{
        .policy = policy, .facts = target_facts(BuildOptions()), .after_pass = keep, .checks_types = false, .takes_notes = true};
    Compiled compiled = run_passes(inputs.program, inputs.rulebook, options, Stage::stores);
    made.program = std::move(compiled.forms.main.program);
    made.sites = compiled.notes.decisions.all_sites();
    made.matmuls = compiled.notes.decisions.all_matmuls();
    return made;
}

PolicyRun::PolicyRun(const PolicyInputs &inputs, const Policy &policy)
    : made_(stored_program(inputs, policy)), graph_(made_.program), intermediates_(policy.intermediates) {
    units_ = units();
    run_.emplace(graph_, inputs.for_program(made_.program), inputs.rulebook, RecordedNumbers::stored);
}

std::vector<Array> PolicyRun::exact_arguments(const std::map<std::string, Array> &exact_inputs) const {
    std::vector<Array> found;
    for (const Argument &argument : made_.program.arguments) {
        const std::string &name = made_.program.value_name(argument.value);
        const Type &type = made_.program.type(argument.value);
        if (argument.initial) {
            found.push_back(to_tensor(initial_state(name, type, *argument.initial)));
            if (is_float(type.dtype)) found.back().data = distinct_numbers(name, found.back().data.size(), exact_scale);
        } else if (argument.part.is_scale()) {
            found.push_back({Dtype::f32, {}, {exact_scale}});
        } else {
            found.push_back(exact_inputs.at(argument.part.array(name)));
            found.back().dtype = type.dtype;
            if (argument.part.kind == ArrayPart::Kind::data)
                for (double &number : found.back().data) number /= exact_scale;
        }
    }
    return found;
}

void PolicyRun::find_forms(const SourceTensors &tensors, const std::map<std::string, Array> &exact_inputs, const Rulebook &rulebook) {
    forms_.resize(tensors.all().size());
    const RecordedRun exact(graph_, exact_arguments(exact_inputs), rulebook, RecordedNumbers::exact);
    for (const ValueRef &value : exact.order()) {
        if (!graph_.varies(value) || run_->find(value) == nullptr) continue;
        auto found = member(value, exact, tensors);
        if (makes_narrow(value, graph_.producer(value)))
            if (auto form = narrowed(value, exact, tensors)) found = std::move(form);
        if (found) add(value, std::move(*found), tensors.all()[found->place.tensor]);
    }
}

/// Returns the scale of the data that a value holds: `x.scale` of `x.data`. Only a hint, because its numbers are compared.
std::optional<ValueRef> PolicyRun::scale_of(const ValueRef &value) const {
    const Value &row = value.program->values[value.value];
    if (row.part.kind != ArrayPart::Kind::data) return {};
    const std::string ending = ".data";
    for (size_t i = 0; i < value.program->values.size(); i++) {
        const Value &other = value.program->values[i];
        if (other.part.is_scale() && other.part.of == row.part.of && row.name.ends_with(ending) &&
            other.name == row.name.substr(0, row.name.size() - ending.size()) + ".scale")
            return ValueRef{value.program, static_cast<ValueId>(i)};
    }
    return {};
}

/// Finds the tensor whose numbers a value has.
std::optional<PolicyRun::Member> PolicyRun::direct(const ValueRef &value, const RecordedRun &exact, const SourceTensors &tensors) const {
    const Array *own = exact.find(value), *numbers = run_->find(value);
    if (own == nullptr || numbers == nullptr) return {};
    const Node *node = graph_.producer(value);
    const Value &row = value.program->values[value.value];
    auto place = tensors.find(own->data, row.part.array(row.name), node == nullptr ? "" : node->scope);
    if (!place) return {};
    return Member{std::move(*place), numbers->data};
}

/// Finds the tensor whose numbers a value has, alone or times its scale.
std::optional<PolicyRun::Member> PolicyRun::member(const ValueRef &value, const RecordedRun &exact, const SourceTensors &tensors) const {
    if (auto found = direct(value, exact, tensors)) return found;
    const Node *node = graph_.producer(value);
    const Value &row = value.program->values[value.value];
    const std::vector<double> &numbers = exact.find(value)->data;
    const std::optional<ValueRef> scale = scale_of(value);
    if (!scale || exact.find(*scale) == nullptr || run_->find(*scale) == nullptr) return {};
    const auto product = [&](const std::vector<double> &data, const std::vector<double> &scales) {
        std::vector<double> made = data;
        for (size_t i = 0; i < made.size(); i++) made[i] *= scales.size() == 1 ? scales[0] : scales[i];
        return made;
    };
    const std::vector<double> &scales = exact.find(*scale)->data;
    if (scales.size() != 1 && scales.size() != numbers.size()) return {};
    auto place = tensors.find(product(numbers, scales), row.part.array(row.name), node == nullptr ? "" : node->scope);
    if (!place) return {};
    return Member{std::move(*place), product(run_->find(value)->data, run_->find(*scale)->data)};
}

/// Finds the tensor of which a conversion makes a rounded copy: the value that is multiplied or divided by a factor, limited and converted.
std::optional<PolicyRun::Member> PolicyRun::narrowed(const ValueRef &value, const RecordedRun &exact, const SourceTensors &tensors) const {
    const Program &program = *value.program;
    const std::vector<int> &producers = graph_.producers_of(program);
    ScaledFrom from{{&program, graph_.producer(value)->operands[0]}, {}};
    const ValueRef converted = from.value;
    ValueRef before_limits = converted;
    while (const Node *node = graph_.producer(from.value)) {
        if (from.factor || direct(from.value, exact, tensors)) break;
        const auto limited = limited_operand(program, producers, *node);
        if (limited || node->op == "round_by_bits") {
            from.value.value = limited ? limited->operand : node->operands[0];
            before_limits = from.value;
        } else if (node->op == "div" || node->op == "mul") {
            const bool is_first = node->op == "div" || direct({&program, node->operands[0]}, exact, tensors).has_value();
            from = {{&program, node->operands[is_first ? 0 : 1]}, ValueRef{&program, node->operands[is_first ? 1 : 0]}, node->op == "div"};
        } else {
            break;
        }
    }
    std::optional<Member> found = direct(from.value, exact, tensors);
    const Array *factor = from.factor ? run_->find(*from.factor) : nullptr, *before = run_->find(before_limits);
    if (!found || (from.factor && factor == nullptr) || before == nullptr) return {};
    const Array &made = *run_->find(value);
    if (made.data.size() != found->numbers.size() || before->data.size() != made.data.size()) return {};
    found->saturated = count_saturated(before->data, made.data, made.dtype);
    found->numbers = made.data;
    for (size_t i = 0; factor != nullptr && i < found->numbers.size(); i++)
        found->numbers[i] = from.divides ? found->numbers[i] * factor->data[i] : found->numbers[i] / factor->data[i];
    return found;
}

/// Adds a form. Copies with the same format and the same numbers are one form. A value in f32 that has the numbers of the tensor in exact
/// arithmetic is the tensor itself if it is the first, and otherwise only a widened copy.
void PolicyRun::add(const ValueRef &value, Member member, const SourceTensor &tensor) {
    std::vector<TensorForm> &forms = forms_[member.place.tensor];
    const Dtype dtype = value.program->type(value.value).dtype;
    if (!forms.empty() && !is_narrow(dtype)) return;
    TensorForm form{value, dtype, in_order_of_tensor(std::move(member.numbers), member.place), member.saturated};
    const auto is_same = [&](const TensorForm &known) { return known.format == dtype && known.numbers == form.numbers; };
    const auto known = std::ranges::find_if(forms, is_same);
    form_of_[value] = {member.place.tensor, static_cast<size_t>(known - forms.begin())};
    if (known != forms.end()) return;
    if (is_narrow(dtype)) explain(form, tensor);
    forms.push_back(std::move(form));
}

/// Finds the rule that decides the format of a form: at a site in its scope, or at another site of the tensor.
void PolicyRun::explain(TensorForm &form, const SourceTensor &tensor) const {
    const Node *node = graph_.producer(form.value);
    const std::string scope = node == nullptr ? "" : node->scope;
    bool is_in_scope = false;
    const auto consider = [&](const std::string &name, Dtype stored, const Location &rule, const std::string &of_site) {
        if (rule.line == 0 || stored != form.format || is_in_scope) return;
        if (!std::ranges::count(tensor.names, name) && name != tensor.result) return;
        if (form.rule.line == 0 || of_site == scope) form.rule = rule;
        is_in_scope = of_site == scope;
    };
    for (const NumericsDecision &site : made_.sites) consider(site.tensor, site.stored, site.row, site.scope);
    for (const MatmulDecision &matmul : made_.matmuls)
        for (const OperandDecision &operand : matmul.operands) consider(operand.tensor, operand.stored, operand.row, matmul.scope);
    if (form.rule.line == 0 && intermediates_ == form.format) form.why = "intermediates";
}

std::optional<std::pair<size_t, size_t>> PolicyRun::form_of(const ValueRef &value) const {
    const auto found = form_of_.find(value);
    return found == form_of_.end() ? std::nullopt : std::optional(found->second);
}

/// A value that a loop carries depends on itself, so the units grow until none changes.
std::map<ValueRef, double> PolicyRun::units() const {
    std::map<ValueRef, double> units;
    std::vector<ValueRef> values;
    for (const Program *program : graph_.programs())
        for (size_t i = 0; i < program->values.size(); i++) {
            const Dtype dtype = program->values[i].type.dtype;
            const bool rounds = is_float(dtype) && (dtype == Dtype::f64 || format_of(dtype).mantissa_bits > 0);
            values.push_back({program, static_cast<ValueId>(i)});
            units[values.back()] = rounds ? unit_roundoff(dtype) : 0;
        }
    for (bool has_changed = true; has_changed;) {
        has_changed = false;
        for (const ValueRef &value : values) {
            double &unit = units[value];
            for (const ValueRef &source : graph_.sources(value))
                if (units[source] > unit) unit = units[source], has_changed = true;
        }
    }
    return units;
}

} // namespace scalide
