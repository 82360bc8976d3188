#include "transforms/constants/pack_operands.h"
#include "ir/regions.h"
#include "ir/text.h"
#include "transforms/analysis/splice.h"
#include "transforms/constants/open_regions.h"
#include "transforms/constants/packed_kernel.h"
#include <algorithm>
#include <set>
#include <utility>

namespace scalide {

namespace {

/// Where panels are computed: before the visited node of `level`, or by `prepare` if all values are prepared.
struct Home {
    Level *level = nullptr;
    std::vector<ValueId> values; ///< the sources of the panels
    bool is_prepared = false;
};

class OperandPacking {
public:
    OperandPacking(const std::vector<Program *> &mains, Program *prepare, const ChoosePanels &choose, const FormKernels &form)
        : mains_(mains), prepare_(prepare), choose_(choose), form_kernels_(form) {}

    void pack() {
        for (Program *main : mains_) {
            forms_.push_back({main, prepared_numbers(*main), {}});
            Level top{*main};
            visit(top);
        }
        for (PackedForm &form : forms_) add_panels(form);
        remove_unread();
    }

private:
    struct PackedForm {
        Program *main;
        std::vector<int> numbers; ///< by value: the number of the prepared array; -1 for other values
        std::map<size_t, ValueId> prepared_panels;
    };
    PackedForm &form() { return forms_.back(); }

    static std::vector<int> prepared_numbers(const Program &main) {
        std::vector<int> numbers(main.values.size(), -1);
        int count = 0;
        for (const Argument &argument : main.arguments)
            if (argument.supply == Supply::prepared) numbers[argument.value] = count++;
        return numbers;
    }

    void visit(Level &level) {
        std::vector<Node> nodes;
        for (Node &node : std::exchange(level.program.nodes, {})) {
            if (node.op == "call")
                pack_call(level, node);
            else
                visit_regions(level, node);
            std::ranges::move(std::exchange(level.before, {}), std::back_inserter(nodes));
            nodes.push_back(std::move(node));
        }
        level.program.nodes = std::move(nodes);
    }

    void visit_regions(Level &level, Node &node) {
        OpenNode open(level, node);
        for (size_t r = 0; r < open.regions.size(); r++) {
            Level inner{open.regions[r], &open, r};
            visit(inner);
        }
        open.close();
    }

    void pack_call(Level &level, Node &call) {
        const Program kernel = form().main->program(call.attributes.at("program").word);
        const auto layout = choose_(kernel);
        const auto source = layout ? panel_program(kernel, *layout) : std::nullopt;
        if (!source) return;
        std::vector<ValueId> values;
        for (const size_t argument : source->sources) {
            values.push_back(call.operands[argument]);
            if (level.program.type(values.back()) != kernel.type(kernel.arguments[argument].value)) return;
        }
        const Home home = find_home(level, values);
        if (home.level == nullptr) return;
        const ValueId made = home.is_prepared ? prepared_panels(source->program, home, call) : loop_panels(source->program, home, call);
        const ValueId panels = bring(*home.level, made, level);
        call.operands.push_back(panels);
        Program packed = with_panels(kernel, *layout, level.program.type(panels), call.operands);
        call.attributes["program"] = add_kernel(std::move(packed), kernel.attributes.at("kind").word + "_packed_");
    }

    /// Follows the values outwards while all of them are captures.
    Home find_home(Level &level, std::vector<ValueId> values) {
        Home home;
        for (Level *at = &level; at != nullptr;) {
            if (at->owner == nullptr) {
                const bool is_prepared = std::ranges::all_of(values, [&](ValueId value) { return is_prepared_array(value); });
                return is_prepared ? Home{at, values, true} : home;
            }
            for (ValueId &value : values) value = at->captured(value);
            if (std::ranges::count(values, -1) > 0) return home;
            Level &outer = at->owner->outer;
            if (at->owner->is_loop()) home = {&outer, values};
            at = &outer;
        }
        return home;
    }

    bool is_prepared_array(ValueId value) {
        const auto &numbers = form().numbers;
        return size_t(value) < numbers.size() && numbers[value] >= 0;
    }

    /// Finds the panels among the results of `prepare`, or adds them. Returns their value in the main program.
    ValueId prepared_panels(const Program &program, const Home &home, const Node &call) {
        Node in_prepare = call;
        in_prepare.operands.clear();
        std::string key = to_string(canonical(program));
        for (const ValueId value : home.values) {
            const auto number = size_t(form().numbers[value]);
            in_prepare.operands.push_back(prepare_->results[number].value);
            key += "\n" + std::to_string(number);
        }
        const auto [known, is_new] = panels_.emplace(key, prepare_->results.size());
        if (is_new) {
            const ValueId panels = append_body(*prepare_, program, in_prepare)[0];
            prepare_->results.push_back({.name = new_name(constant_of(in_prepare.operands[0]) + ".panels"), .value = panels});
        }
        return panels_in(form(), known->second);
    }

    /// Returns the value of prepared panels in a form, which add_panels() makes an argument.
    ValueId panels_in(PackedForm &form, size_t number) {
        const auto [known, is_new] = form.prepared_panels.emplace(number, -1);
        const Result &result = prepare_->results[number];
        if (is_new) known->second = add_value(*form.main, result.name, prepare_->type(result.value));
        return known->second;
    }

    /// Finds the panels that a level computes before a loop, or adds a straight region that does.
    ValueId loop_panels(const Program &program, const Home &home, const Node &call) {
        std::string key = to_string(canonical(program));
        for (const ValueId value : home.values) key += "\n" + std::to_string(value);
        const auto [known, is_new] = home.level->made.emplace(key, -1);
        if (!is_new) return known->second;
        Program part = form_kernels_(program);
        for (Node &node : part.nodes) {
            const Program kernel = part.program(node.attributes.at("program").word);
            node.attributes["program"] = add_kernel(kernel, kernel.attributes.at("kind").word + "_panels_");
        }
        part.name = "part";
        part.attributes = {};
        part.symbols = {};
        part.programs = {};
        Program &around = home.level->program;
        Node straight{.op = "straight", .operands = home.values, .scope = call.scope, .role = call.role, .location = call.location};
        known->second = add_value(around, around.value_name(home.values[0]) + ".panels", part.type(part.results[0].value));
        straight.results = {known->second};
        straight.regions = {std::make_shared<const Program>(std::move(part))};
        home.level->before.push_back(std::move(straight));
        return known->second;
    }

    /// Returns the name of the first constant from which `prepare` computes a value.
    const std::string &constant_of(ValueId value) const {
        const std::vector<int> producer = producers(*prepare_);
        while (producer[value] >= 0 && !prepare_->nodes[producer[value]].operands.empty())
            value = prepare_->nodes[producer[value]].operands[0];
        return prepare_->values[value].part.array(prepare_->value_name(value));
    }

    /// Returns a name that no result of `prepare` has.
    std::string new_name(const std::string &name) const {
        std::string fresh = name;
        for (int number = 2; std::ranges::count(prepare_->results, fresh, &Result::name) > 0; number++)
            fresh = name + "_" + std::to_string(number);
        return fresh;
    }

    /// Adds all panels of `prepare` to the arguments of a form.
    void add_panels(PackedForm &form) {
        for (const auto &[key, number] : panels_) panels_in(form, number);
        for (const auto &[number, value] : form.prepared_panels)
            form.main->arguments.push_back({.value = value, .supply = Supply::prepared});
    }

    /// Adds a kernel to the form and returns its name. Equal kernels have one name.
    std::string add_kernel(Program kernel, const std::string &kind) {
        Program &main = *form().main;
        int count = 1;
        for (const Program &known : main.programs) {
            kernel.name = known.name;
            if (equal(known, kernel)) return known.name;
            count += known.name.starts_with(kind);
        }
        kernel.name = kind + std::to_string(count);
        main.programs.push_back(std::move(kernel));
        return main.programs.back().name;
    }

    static void remove_uncalled(Program &main) {
        std::set<std::string> called;
        visit_programs(main, [&](const Program &program) {
            for (const Node &node : program.nodes)
                if (node.op == "call") called.insert(node.attributes.at("program").word);
        });
        std::erase_if(main.programs, [&](const Program &kernel) { return !called.contains(kernel.name); });
    }

    /// Removes prepared arrays that no form reads, and kernels that no step calls.
    void remove_unread() {
        for (Program *main : mains_) remove_uncalled(*main);
        if (panels_.empty()) return;
        std::vector<bool> is_read(prepare_->results.size(), false);
        for (const Program *main : mains_) {
            const std::vector<int> uses = count_uses(*main), numbers = prepared_numbers(*main);
            for (const Argument &argument : main->arguments)
                if (numbers[argument.value] >= 0 && uses[argument.value] > 0) is_read[size_t(numbers[argument.value])] = true;
        }
        const auto remove = [&](auto &rows, size_t first) {
            size_t number = 0;
            std::erase_if(rows, [&](const auto &) { return number++ >= first && !is_read[number - 1 - first]; });
        };
        for (Program *main : mains_) remove(main->arguments, main->arguments.size() - is_read.size());
        remove(prepare_->results, 0);
        *prepare_ = remove_dead_nodes(std::move(*prepare_));
    }

    const std::vector<Program *> &mains_;
    Program *prepare_;
    const ChoosePanels &choose_;
    const FormKernels &form_kernels_;
    std::map<std::string, size_t> panels_; ///< results of `prepare`, by the text of their program and its arguments
    std::vector<PackedForm> forms_;
};

} // namespace

void pack_operands(const std::vector<Program *> &mains, Program *prepare, const ChoosePanels &choose, const FormKernels &form) {
    OperandPacking(mains, prepare, choose, form).pack();
}

} // namespace scalide
