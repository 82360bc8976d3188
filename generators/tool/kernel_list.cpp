#include "tool/kernel_list.h"
#include "ir/dtype_advice.h"
#include "ir/text.h"
#include "ir/words.h"
#include "rulebook/check_operands.h"
#include "rulebook/check_rule.h"
#include "rulebook/nearest.h"
#include "rulebook/rule_reader.h"
#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace scalide {

namespace {

/// `bias` adds a vector, so it is another word for `add`.
const std::string &operator_of(const std::string &word) {
    static const std::string add = "add";
    return word == "bias" ? add : word;
}

/// Reads the dtype of an argument, which is never f64.
Dtype read_dtype(const YamlValue &value) {
    const std::string word = value.text();
    const std::optional<Dtype> dtype = parse_dtype(word);
    if (dtype && *dtype != Dtype::f64) return *dtype;
    std::vector<std::string> names;
    for (const Dtype known : all_dtypes())
        if (known != Dtype::f64) names.emplace_back(to_string(known));
    const std::string advice = dtype_advice(word);
    value.fail("must be the dtype of an array", "'" + word + "'", advice.empty() ? suggestion(word, names) : advice);
}

/// Reads an extent of a shape. An error names the key of the shape.
Extent read_extent(const std::string &text, const YamlValue &shape) {
    try {
        return parse_extent(text, shape.location());
    } catch (const UserError &error) {
        shape.fail("an extent must be a number, a symbol, or an expression such as 2*b + 1", "'" + text + "'", error.message().way_out);
    }
}

/// Reads `{b: {min: 1, max: 64, multiple: 1, likely: [1, 8]}}`.
std::vector<Symbol> read_symbols(const YamlValue &value) {
    std::vector<Symbol> symbols;
    for (const auto &[name, entry] : value.entries()) {
        const YamlFields fields = entry.fields({{"min"}, {"max"}, {"multiple"}, {"likely"}});
        Symbol symbol{name};
        if (!is_plain_name(name)) entry.fail("the name of a symbol must have letters and digits", "'" + name + "'");
        const auto read = [&](const char *key, int64_t least, int64_t &number) {
            const YamlValue *given = fields.find(key);
            if (!given) return;
            number = given->integer();
            if (number < least || number > Symbol{}.maximum)
                given->fail(fmt::format("must be in {}..{}", least, Symbol{}.maximum), std::to_string(number));
        };
        read("min", 0, symbol.minimum);
        read("max", symbol.minimum, symbol.maximum);
        read("multiple", 1, symbol.multiple);
        if (const YamlValue *likely = fields.find("likely"))
            for (const YamlValue &each : likely->elements()) {
                const int64_t number = each.integer();
                if (number < symbol.minimum || number > symbol.maximum || number % symbol.multiple)
                    each.fail("must be a value that the symbol can have", std::to_string(number));
                symbol.likely.push_back(number);
            }
        symbols.push_back(symbol);
    }
    return symbols;
}

class KernelReader {
public:
    KernelReader(const Rulebook &rulebook, const PolicyLoader &load, const std::vector<Symbol> &symbols)
        : rulebook_(rulebook), load_(load), symbols_(symbols) {}

    LibraryKernel read(const YamlValue &unnamed) const {
        const std::string name = unnamed.text_of("name");
        const YamlValue value = unnamed.called(name.empty() ? "kernel" : name);
        const YamlFields fields = value.fields({{"op"},
                                                {"ops"},
                                                {"name", Key::required},
                                                {"shapes", Key::required},
                                                {"dtypes"},
                                                {"attributes"},
                                                {"numerics"},
                                                {"scaled"},
                                                {"constant"},
                                                {"grad"}});
        LibraryKernel kernel;
        kernel.name = name;
        kernel.location = value.location();
        if (!is_plain_name(name) || name.find_first_of(".$") != std::string::npos)
            fields.find("name")->fail("must have letters, digits and '_', and start with a letter", "'" + name + "'");
        read_steps(value, fields, kernel);
        read_operands(*fields.find("shapes"), kernel);
        if (const YamlValue *dtypes = fields.find("dtypes")) read_dtypes(*dtypes, kernel);
        if (const YamlValue *scaled = fields.find("scaled")) kernel.scaled = scaled->flag();
        if (const YamlValue *constants = fields.find("constant"))
            for (const std::string &name : constants->texts())
                for (ListedOperand *operand : find_operand(*constants, kernel, name)) operand->is_constant = true;
        if (const YamlValue *gradients = fields.find("grad")) read_gradients(*gradients, kernel);
        if (const YamlValue *numerics = fields.find("numerics")) read_numerics(*numerics, kernel);
        kernel.symbols = symbols_;
        return kernel;
    }

private:
    void read_steps(const YamlValue &value, const YamlFields &fields, LibraryKernel &kernel) const {
        const YamlValue *op = fields.find("op"), *ops = fields.find("ops");
        if (!op == !ops) value.fail("must have either 'op' or 'ops'");
        if (op) read_step(*op, kernel);
        if (ops)
            for (const YamlValue &each : ops->elements()) read_step(each, kernel);
        if (kernel.steps.empty()) ops->fail("must have an operator");
        if (const YamlValue *attributes = fields.find("attributes")) read_attributes(*attributes, kernel.steps[0]);
    }

    /// Reads `softmax`, or `{op: softmax, attributes: {axes: [1]}}`.
    void read_step(const YamlValue &value, LibraryKernel &kernel) const {
        if (value.is_text()) {
            kernel.steps.push_back({callable_rule(rulebook_, operator_of(value.text()), value.location()), {}, value.location()});
            return;
        }
        const YamlFields fields = value.fields({{"op", Key::required}, {"attributes"}});
        read_step(*fields.find("op"), kernel);
        if (const YamlValue *attributes = fields.find("attributes")) read_attributes(*attributes, kernel.steps.back());
    }

    void read_attributes(const YamlValue &value, KernelStep &step) const {
        CheckCase given;
        for (const auto &[name, entry] : value.entries()) {
            const AttributeSpec *spec = find_attribute(*step.rule, name);
            if (!spec) {
                std::vector<std::string> names;
                for (const AttributeSpec &each : step.rule->attributes) names.push_back(each.name);
                const std::string none = "'" + step.rule->op + "' has no attributes";
                entry.fail_unknown("attribute", entry.path(), names.empty() ? none : suggestion(name, names));
            }
            if (step.attributes.contains(name)) entry.fail("this attribute is given twice");
            given.attributes[name] = read_attribute_value(entry, *spec);
            step.places[name] = entry.location();
        }
        step.attributes.insert(check_attributes(*step.rule, given));
    }

    /// Reads the shapes in the order of the operands. The first operand of each later step is the result of the previous step.
    void read_operands(const YamlValue &value, LibraryKernel &kernel) const {
        std::vector<std::pair<const OperandSpec *, size_t>> specs; // with the number of the step
        for (size_t i = 0; i < kernel.steps.size(); i++)
            for (size_t j = i > 0; j < kernel.steps[i].rule->operands.size(); j++)
                specs.emplace_back(&kernel.steps[i].rule->operands[j], i);
        const auto entries = value.entries();
        std::string needed;
        for (const auto &[spec, step] : specs) needed += fmt::format("{}{}", needed.empty() ? "" : ", ", spec->name);
        if (entries.size() != specs.size())
            value.fail(fmt::format("the number of shapes must be {}, one for each of {}", specs.size(), needed),
                       std::to_string(entries.size()));
        kernel.operands.resize(kernel.steps.size());
        for (size_t i = 0; i < specs.size(); i++) {
            const auto &[name, shape] = entries[i];
            const auto [spec, step] = specs[i];
            for (const auto &[other, _] : specs)
                if (kernel.steps.size() == 1 && other->name == name && other != spec)
                    shape.fail("the shapes must be in the order " + needed, "'" + name + "' for the operand '" + spec->name + "'");
            int number = 0;
            for (const std::vector<std::string> &extents : read_shapes(shape, *spec)) {
                ListedOperand operand{spec->variadic ? fmt::format("{}.{}", name, number++) : name, {}};
                operand.location = shape.location();
                for (const std::string &extent : extents) operand.shape.push_back(read_extent(extent, shape));
                kernel.operands[step].push_back(std::move(operand));
            }
        }
    }

    void read_dtypes(const YamlValue &value, LibraryKernel &kernel) const {
        if (value.is_text()) {
            kernel.dtype = read_dtype(value);
            return;
        }
        for (const auto &[name, entry] : value.entries()) {
            const Dtype dtype = read_dtype(entry);
            for (ListedOperand *operand : find_operand(entry, kernel, name)) operand->dtype = dtype;
        }
    }

    /// Returns an operand. For a variadic operand, the name without a number means all its arrays.
    static std::vector<ListedOperand *> find_operand(const YamlValue &where, LibraryKernel &kernel, const std::string &name) {
        std::vector<ListedOperand *> found;
        std::vector<std::string> names;
        for (std::vector<ListedOperand> &step : kernel.operands)
            for (ListedOperand &operand : step) {
                names.push_back(operand.name);
                if (operand.name == name || operand.name.starts_with(name + ".")) found.push_back(&operand);
            }
        if (found.empty()) where.fail_unknown("operand", kernel.name + "." + name, suggestion(name, names));
        return found;
    }

    static void read_gradients(const YamlValue &value, LibraryKernel &kernel) {
        kernel.gradients = value.texts();
        for (const std::string &name : kernel.gradients)
            for (const ListedOperand *operand : find_operand(value, kernel, name))
                if (operand->is_constant)
                    value.fail("must name operands that are not in 'constant'", "'" + name + "'", "A constant has no gradient");
    }

    void read_numerics(const YamlValue &value, LibraryKernel &kernel) const {
        try {
            kernel.policy = load_(value.text());
        } catch (const UserError &error) {
            Message message = error.message();
            if (message.location.file.empty()) message.location = value.location();
            throw UserError(message);
        }
    }

    const Rulebook &rulebook_;
    const PolicyLoader &load_;
    const std::vector<Symbol> &symbols_;
};

void check_used(const YamlValue &value, const std::vector<LibraryKernel> &kernels) {
    std::set<std::string> used;
    for (const LibraryKernel &kernel : kernels)
        for (const auto &step : kernel.operands)
            for (const ListedOperand &operand : step)
                for (const Extent &extent : operand.shape)
                    for (const std::string &symbol : extent.symbols()) used.insert(symbol);
    for (const auto &[name, entry] : value.entries())
        if (!used.contains(name)) entry.fail("must be in a shape of a kernel", "", "Remove it");
}

} // namespace

bool is_callable(const Rule &rule) {
    const auto is_program = [](const OperandSpec &spec) { return spec.operand_class == OperandClass::program; };
    return !rule.operands.empty() && !rule.check.cases.empty() && !rule.takes_program() && std::ranges::none_of(rule.operands, is_program);
}

const Rule *callable_rule(const Rulebook &rulebook, const std::string &op, const Location &where) {
    const Rule *found = rulebook.find(op);
    if (found && is_callable(*found)) return found;
    std::vector<std::string> names;
    for (const Rule *rule : rulebook.rules())
        if (is_callable(*rule)) names.push_back(rule->op);
    const std::string near = nearest_operator(op, names);
    throw UserError(unknown_name(where, "operator", op,
                                 near.empty() ? "'scalide rules' lists the operators; a kernel can be an operator with array operands"
                                              : "Did you mean '" + near + "'?"));
}

std::vector<LibraryKernel> read_kernels(const std::string &yaml, const std::string &file, const Rulebook &rulebook,
                                        const PolicyLoader &load) {
    const std::vector<YamlValue> documents = parse_yaml(yaml, file);
    if (documents.size() != 1)
        throw UserError({{file}, "", "a kernel list must be one YAML document", std::to_string(documents.size()), ""});
    const YamlValue document = documents[0].called("kernels");
    const YamlFields fields =
        document.is_map() ? documents[0].called("").fields({{"symbols"}, {"kernels", Key::required}}) : YamlFields({});
    const YamlValue *declared = fields.find("symbols"), *list = document.is_map() ? fields.find("kernels") : &document;
    const std::vector<Symbol> symbols = declared ? read_symbols(declared->called("symbols")) : std::vector<Symbol>();
    const KernelReader reader(rulebook, load, symbols);
    std::vector<LibraryKernel> kernels;
    for (const YamlValue &each : list->called("kernels").elements()) kernels.push_back(reader.read(each));
    if (kernels.empty()) list->fail("must have a kernel");
    if (declared) check_used(declared->called("symbols"), kernels);
    return kernels;
}

} // namespace scalide
