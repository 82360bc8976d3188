#include "ir/words.h"
#include "rulebook/nearest.h"
#include "tool/checkpoint.h"
#include "tool/common.h"
#include "transforms/pipeline.h"
#include <algorithm>
#include <cctype>
#include <fmt/core.h>
#include <numeric>
#include <sstream>

namespace scalide {

namespace {

/// Returns the text that the `*` of a pattern stands for in a name: "" without a `*`, nothing if the name does not match.
std::optional<std::string> star_text(const std::string &pattern, const std::string &name) {
    const size_t star = pattern.find('*');
    if (star == std::string::npos) return name == pattern ? std::optional(std::string()) : std::nullopt;
    const std::string before = pattern.substr(0, star), after = pattern.substr(star + 1);
    if (name.size() < before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) return {};
    return name.substr(before.size(), name.size() - before.size() - after.size());
}

/// A new name of arrays. The old name may have one `*`, for any text; this text replaces the `*` of the new name.
struct Rename {
    std::string from, to;
    bool is_used = false;

    explicit Rename(const std::string &text) {
        const size_t sign = text.find('=');
        if (sign != std::string::npos) {
            from = text.substr(0, sign);
            to = text.substr(sign + 1);
        }
        const auto stars = std::ranges::count(from, '*');
        if (from.empty() || to.empty() || stars > 1 || stars != std::ranges::count(to, '*'))
            throw UserError({{}, "--rename", "must be OLD=NEW, with one '*' in both names or in none", "'" + text + "'", ""});
    }

    std::optional<std::string> applied(const std::string &name) const {
        const std::optional<std::string> text = star_text(from, name);
        if (!text) return {};
        const size_t star = to.find('*');
        return star == std::string::npos ? to : std::string(to).replace(star, 1, *text);
    }
};

/// Arguments whose arrays the checkpoint stores with other axes: NAME for the two axes of a matrix, NAME=1,2,0 for a permutation.
struct Transpose {
    std::string pattern;
    std::vector<int64_t> permutation = {1, 0};
    bool is_used = false;

    explicit Transpose(const std::string &text) : pattern(text.substr(0, text.rfind('='))) {
        if (pattern.size() != text.size()) permutation = numbers(text.substr(pattern.size() + 1));
        std::vector<int64_t> sorted = permutation, expected(permutation.size());
        std::ranges::sort(sorted);
        std::iota(expected.begin(), expected.end(), 0);
        if (pattern.empty() || sorted.empty() || sorted != expected || std::ranges::count(pattern, '*') > 1)
            throw UserError({{}, "--transpose", "must be NAME, or NAME=AXES with each axis once, such as w=1,2,0", "'" + text + "'", ""});
    }

    static std::vector<int64_t> numbers(const std::string &text) {
        std::vector<int64_t> found;
        std::istringstream words(text);
        for (std::string word; std::getline(words, word, ',');) {
            const bool is_axis = word.size() == 1 && std::isdigit(static_cast<unsigned char>(word[0]));
            found.push_back(is_axis ? word[0] - '0' : -1);
        }
        return found;
    }
};

bool is_static(const Type &type) {
    return std::ranges::all_of(type.shape, [](const Extent &extent) { return extent.is_static(); });
}

struct ConvertCommand {
    ProgramOptions program;
    std::string input, output;
    std::vector<std::string> renames, transposes, omitted;

    void run() const {
        const Rulebook rulebook = program.load_rulebook();
        const Program source = program.load_program(rulebook);
        const CompileOptions options{.policy = program.load_numerics(), .checks_types = false};
        const Program wanted = run_passes(source, rulebook, options, Stage::formats).forms.main.program;
        Checkpoint checkpoint(input);
        std::map<std::string, std::string> sources = sources_of(checkpoint);
        check_omitted(wanted);
        std::vector<Transpose> turns(transposes.begin(), transposes.end());
        std::vector<HostArray> arrays;
        std::vector<std::string> missing;
        for (const Argument &argument : wanted.arguments) {
            const std::string &name = wanted.value_name(argument.value);
            const auto source = sources.find(name);
            if (std::ranges::find(omitted, name) != omitted.end()) continue;
            if (source != sources.end()) {
                const HostArray array = with_axes(checkpoint.find(source->second), name, turns);
                arrays.push_back(converted(array, name, wanted.type(argument.value), argument.scaled));
                sources.erase(source);
            } else if (argument.initial) {
                arrays.push_back(initial_state(name, wanted.type(argument.value), *argument.initial));
            } else if (argument.inout || is_static(wanted.type(argument.value))) {
                missing.push_back(name);
            }
        }
        if (!missing.empty()) refuse_missing(missing, sources);
        for (const Transpose &turn : turns) {
            const std::vector<std::string> names = names_of(wanted);
            if (!turn.is_used) throw UserError(unknown_name({}, "argument", turn.pattern, suggestion(turn.pattern, names)));
        }
        write_arrays(output, arrays);
        fmt::print("{}: {} arrays\n", output, arrays.size());
        if (!sources.empty()) fmt::print("not used: {}\n", joined(names_of(sources)));
    }

    static std::vector<std::string> names_of(const Program &program) {
        std::vector<std::string> names;
        for (const Argument &argument : program.arguments) names.push_back(program.value_name(argument.value));
        return names;
    }

    static std::vector<std::string> names_of(const std::map<std::string, std::string> &sources) {
        std::vector<std::string> names;
        for (const auto &[name, source] : sources) names.push_back(name);
        return names;
    }

    /// Returns name in the program -> name in the checkpoint.
    std::map<std::string, std::string> sources_of(const Checkpoint &checkpoint) const {
        std::vector<Rename> rows(renames.begin(), renames.end());
        std::map<std::string, std::string> sources;
        for (const std::string &name : checkpoint.names()) {
            std::string renamed = name;
            for (Rename &row : rows) {
                const std::optional<std::string> applied = row.applied(name);
                if (!applied) continue;
                row.is_used = true;
                renamed = *applied;
                break;
            }
            const auto [first, is_new] = sources.emplace(renamed, name);
            if (!is_new)
                throw UserError(statement({input}, "the arrays '" + first->second + "' and '" + name + "' get one name, '" + renamed + "'",
                                          "Change --rename"));
        }
        for (const Rename &row : rows)
            if (!row.is_used) throw UserError(unknown_name({input}, "array", row.from, suggestion(row.from, checkpoint.names())));
        return sources;
    }

    void check_omitted(const Program &wanted) const {
        const std::vector<std::string> names = names_of(wanted);
        for (const std::string &name : omitted)
            if (std::ranges::find(names, name) == names.end()) throw UserError(unknown_name({}, "argument", name, suggestion(name, names)));
    }

    [[noreturn]] void refuse_missing(const std::vector<std::string> &missing, const std::map<std::string, std::string> &rest) const {
        std::string list;
        for (const std::string &name : missing) {
            const std::string near = nearest(name, names_of(rest));
            list += (list.empty() ? "" : ", ") + name_to_string(name) + (near.empty() ? "" : " (similar: " + near + ")");
        }
        throw UserError(statement({input}, "the checkpoint has no array for the arguments " + list,
                                  "Use --rename OLD=NEW, or --omit NAME for an argument that the application sets"));
    }

    /// Returns the array with the axes that the first matching --transpose says.
    HostArray with_axes(HostArray array, const std::string &name, std::vector<Transpose> &turns) const {
        for (Transpose &turn : turns) {
            if (!star_text(turn.pattern, name)) continue;
            turn.is_used = true;
            if (turn.permutation.size() == array.shape.size()) return transposed(array, turn.permutation);
            const Extents shape(array.shape.begin(), array.shape.end());
            throw UserError({{input},
                             name,
                             "must have " + std::to_string(turn.permutation.size()) + " axes to transpose",
                             to_string(shape),
                             "Use --transpose " + name + "=AXES"});
        }
        return array;
    }

    /// Returns the array in the format of an argument. An array that has this format stays as it is.
    HostArray converted(HostArray array, const std::string &name, const Type &type, bool scaled) const {
        const auto refuse = [&](const std::string &requirement, const std::string &got, const std::string &way_out = "") {
            throw UserError({{input}, name, requirement, got, way_out});
        };
        const Extents shape(array.shape.begin(), array.shape.end());
        if (is_static(type) ? shape != type.shape : shape.size() != type.shape.size())
            refuse("must have shape " + to_string(type.shape), to_string(shape),
                   shape == Extents(type.shape.rbegin(), type.shape.rend()) ? "Use --transpose " + name : "");
        array.name = name;
        if (array.dtype == type.dtype && array.scaled == scaled) return array;
        if (is_float(array.dtype) != is_float(type.dtype))
            refuse("must have a dtype that converts to " + std::string(to_string(type.dtype)), std::string(to_string(array.dtype)));
        return in_form(std::move(array), type.dtype, scaled);
    }
};

} // namespace

void add_convert(CLI::App &app) {
    const auto command = std::make_shared<ConvertCommand>();
    CLI::App *convert = app.add_subcommand("convert", "Convert a checkpoint to the formats that a program has under a policy.");
    convert->add_option("CHECKPOINT", command->input, "A safetensors file, a msgpack file of Flax, or the index of several files (.json).")
        ->required();
    command->program.add_to(*convert, "--for")->required();
    convert->add_option("-o,--output", command->output, "Safetensors file for the arguments of the program.")->required();
    convert->add_option("--rename", command->renames,
                        "New name of an array, as OLD=NEW. One '*' in both names stands for any text. Repeatable.");
    convert->add_option(
        "--transpose", command->transposes,
        "An argument whose matrix the checkpoint stores transposed, as PyTorch does. NAME=1,2,0 gives, for each axis of the "
        "argument, the axis in the checkpoint. One '*' stands for any text. Repeatable.");
    convert->add_option("--omit", command->omitted, "An argument that the application sets, so the output does not need it. Repeatable.");
    convert->callback([command] { command->run(); });
}

} // namespace scalide
