#include "interpret/law_case.h"
#include "interpret/operation.h"
#include "ir/text.h"
#include "rulebook/check_operands.h"
#include <algorithm>
#include <cmath>

namespace scalide {

namespace {

/// Zero, one, odd and prime numbers, and one that is larger than a vector register.
const std::vector<int64_t> extents{0, 1, 2, 3, 4, 5, 7, 18}, positive_extents{1, 2, 3, 4, 5, 7, 18};
const std::vector<Dtype> floats{Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f8_e4m3fn, Dtype::f8_e5m2}, f32_alone{Dtype::f32};

/// Replaces the letters of an attribute by numbers: in "m * n" as an element of a list, or alone.
Attribute with_letters(const Attribute &attribute, const Extent::Bindings &letters) {
    Attribute result = attribute;
    for (Attribute &element : result.list) element = with_letters(element, letters);
    if (attribute.kind != Attribute::Kind::word) return result;
    try {
        return parse_extent(attribute.word, {}).evaluate(letters);
    } catch (const UserError &) { // a word that is not an extent with these letters
        return result;
    }
}

/// Collects the words of a list attribute that contain extents.
void collect_extents(const Attribute &attribute, std::vector<std::string> &words) {
    if (attribute.kind == Attribute::Kind::word) words.push_back(attribute.word);
    for (const Attribute &element : attribute.list) collect_extents(element, words);
}

Extent::Bindings draw_letters(const Rule &rule, const CheckCase &check_case, const std::vector<int64_t> &choices, Draw &draw) {
    std::vector<std::string> words;
    for (const auto &[operand, shapes] : check_case.shapes)
        for (const std::vector<std::string> &shape : shapes) words.insert(words.end(), shape.begin(), shape.end());
    for (const AttributeSpec &spec : rule.attributes)
        if (check_case.attributes.contains(spec.name) && (spec.type == "shape" || spec.type == "extent"))
            collect_extents(check_case.attributes.at(spec.name), words);
    Extent::Bindings letters;
    for (const std::string &word : words)
        for (const std::string &letter : parse_extent(word, {}).symbols())
            if (!letters.contains(letter)) letters[letter] = draw.pick(choices);
    return letters;
}

/// Returns true if all operands and the result have the same shape.
bool works_on_any_rank(const Rule &rule, const CheckCase &check_case) {
    const std::vector<std::string> &first = check_case.shapes.begin()->second[0];
    const auto is_first = [&](const std::vector<std::string> &shape) { return shape == first; };
    return rule.family == "elementwise" && rule.results.size() == 1 && !rule.results[0].shape &&
           std::ranges::all_of(check_case.shapes, [&](const auto &entry) { return std::ranges::all_of(entry.second, is_first); });
}

constexpr int64_t largest_rank = 5, largest_count = 512;

std::pair<double, double> domain_of(const Rule &rule, const std::string &operand) {
    const auto found = rule.check.domain.find(operand);
    return found == rule.check.domain.end() ? std::pair(-2.0, 2.0) : found->second;
}

double draw_scale(Scales scales, Draw &draw) {
    switch (scales) {
    case Scales::plain: return 1;
    case Scales::powers: return std::ldexp(1.0, static_cast<int>(draw.integer(-6, 6)));
    case Scales::zero: return std::ldexp(1.0, static_cast<int>(draw.integer(-2, 2))); // the cube of f16 data must not overflow
    case Scales::any: return static_cast<float>(draw.real(0.1, 4));
    case Scales::huge: return 0x1p100;
    case Scales::tiny: return 0x1p-100;
    }
    throw InternalError("internal error: unknown kind of scales");
}

double draw_element(const Array &array, std::pair<double, double> domain, Draw &draw) {
    if (is_float(array.dtype)) return draw.real(domain.first, domain.second);
    if (array.dtype == Dtype::boolean) return static_cast<double>(draw.integer(0, 1));
    return static_cast<double>(draw.integer(std::llround(domain.first), std::llround(domain.second)));
}

/// Draws values from the domain. The values of a scaled operand are divided by its scale, unless the scale is huge or tiny.
void fill(LawInput &input, const LawCase &law_case, Draw &draw) {
    const double divisor = input.scale > 0x1p-90 && input.scale < 0x1p90 ? input.scale : 1;
    input.data.data.resize(element_count(input.data.shape));
    for (double &element : input.data.data) {
        element = draw_element(input.data, domain_of(*law_case.rule, input.operand), draw) / divisor;
        if (is_float(input.data.dtype)) element = round_to(input.data.dtype, element);
    }
}

Array rank_0(double value) { return {Dtype::f32, {}, {value}}; }

} // namespace

double Draw::real(double low, double high) { return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53; }

int64_t Draw::integer(int64_t low, int64_t high) { return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1)); }

LawCase draw_case(const Rule &rule, const CheckCase &check_case, Scales scales, uint64_t seed) {
    Draw draw(seed);
    LawCase law_case{&rule, {}, {}, seed};
    const Extent::Bindings letters = draw_letters(rule, check_case, scales == Scales::zero ? positive_extents : extents, draw);
    for (const auto &[name, attribute] : check_case.attributes) law_case.attributes[name] = with_letters(attribute, letters);
    const std::vector<CheckOperand> operands =
        check_operands(rule, check_case, draw.pick(scales == Scales::any || scales == Scales::zero ? floats : f32_alone));
    const auto zero = static_cast<size_t>(draw.integer(0, std::max<int64_t>(0, static_cast<int64_t>(operands.size()) - 1)));
    for (size_t i = 0; i < operands.size(); i++) {
        LawInput input{operands[i].name, operands[i].spec->name, {operands[i].type.dtype, {}, {}}};
        for (const Extent &extent : operands[i].type.shape) input.data.shape.push_back(extent.evaluate(letters));
        input.scaled = scales != Scales::plain && is_float(input.data.dtype);
        if (input.scaled) input.scale = draw_scale(scales, draw);
        fill(input, law_case, draw);
        const auto [low, high] = domain_of(rule, input.operand);
        if (scales == Scales::zero && i == zero && low <= 0 && high >= 0 && input.scaled) input.scale = 0;
        law_case.inputs.push_back(std::move(input));
    }
    return law_case;
}

CheckCase with_drawn_rank(const Rule &rule, const CheckCase &check_case, uint64_t seed) {
    if (rule.operands.empty() || !works_on_any_rank(rule, check_case)) return check_case;
    Draw draw(seed);
    std::vector<std::string> shape;
    const int64_t rank = draw.integer(0, largest_rank);
    for (int64_t axis = 0, count = 1; axis < rank; axis++) {
        const int64_t extent = draw.pick(count > largest_count / extents.back() ? std::vector<int64_t>{0, 1, 2} : extents);
        shape.push_back(std::to_string(extent));
        count *= std::max<int64_t>(extent, 1);
    }
    CheckCase drawn = check_case;
    for (auto &[operand, shapes] : drawn.shapes)
        for (std::vector<std::string> &each : shapes) each = shape;
    return drawn;
}

LawCase vector_case(const Rule &rule, const CheckVector &vector) {
    LawCase law_case{&rule, vector.attributes, {}, {}};
    std::vector<CheckOperand> operands;
    for (const OperandSpec &spec : rule.operands)
        for (int number = 0; vector.values.contains(spec.variadic ? spec.name + "." + std::to_string(number) : spec.name); number++) {
            const std::string name = spec.variadic ? spec.name + "." + std::to_string(number) : spec.name;
            const std::vector<double> &values = vector.values.at(name);
            operands.push_back({&spec, name, {}});
            if (!vector.scalars.contains(name)) operands.back().type.shape = {static_cast<int64_t>(values.size())};
            if (!spec.variadic) break;
        }
    choose_dtypes(rule, operands, vector.attributes, Dtype::f32);
    for (const CheckOperand &operand : operands) {
        LawInput input{operand.name, operand.spec->name, {operand.type.dtype, {}, vector.values.at(operand.name)}};
        for (const Extent &extent : operand.type.shape) input.data.shape.push_back(extent.value());
        law_case.inputs.push_back(std::move(input));
    }
    return law_case;
}

std::vector<Array> full_values(const LawCase &law_case) {
    std::vector<Array> values;
    for (const LawInput &input : law_case.inputs) {
        values.push_back(input.data);
        for (double &element : values.back().data) element *= input.scale;
    }
    return values;
}

std::vector<Array> parts(const LawCase &law_case) {
    std::vector<Array> arrays;
    for (const LawInput &input : law_case.inputs) {
        arrays.push_back(input.data);
        if (input.scaled) arrays.push_back(rank_0(input.scale));
    }
    return arrays;
}

Program program_of(const LawCase &law_case, const Rulebook &rulebook) {
    Program program;
    program.name = law_case.rule->op;
    Builder builder(rulebook, program);
    std::vector<ValueId> operands;
    for (const LawInput &input : law_case.inputs) {
        const Type type{input.data.dtype, {input.data.shape.begin(), input.data.shape.end()}};
        operands.push_back(add_value(program, input.name, type));
        program.arguments.push_back({operands.back(), input.scaled});
    }
    if (law_case.rule->takes_program()) add_sub_programs(program, *law_case.rule, law_case.attributes, program.type(operands[0]));
    const bool scaled = std::ranges::any_of(law_case.inputs, &LawInput::scaled);
    const std::vector<ValueId> results = builder.add(law_case.rule->op, operands, law_case.attributes);
    for (size_t i = 0; i < results.size(); i++) {
        const bool is_plain = law_case.rule->result(i).plain;
        program.results.push_back(
            {law_case.rule->result_name(i), results[i], scaled && !is_plain && is_float(program.type(results[i]).dtype)});
    }
    return program;
}

} // namespace scalide
