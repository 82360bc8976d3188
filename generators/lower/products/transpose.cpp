#include "lower/formats/formats.h"
#include "lower/values/outputs.h"
#include <algorithm>
#include <optional>

// transpose: a map whose adjacent result elements are not adjacent in an argument. Such an argument is read through two stages. A schedule
// can then read and write whole vectors and transpose blocks in registers.
namespace scalide {
namespace {

/// Records at which indices arguments are read to compute the result.
class ReadRecorder {
public:
    ReadRecorder(Lowering &lowering, ValueId result, const Index &here) {
        const Program &program = lowering.kernel.program;
        Values values(lowering.kernel);
        for (const Argument &argument : program.arguments) {
            Halide::Type word = storage_type(program.type(argument.value).dtype);
            Dtype dtype = program.type(argument.value).dtype;
            values.bind(argument.value, [this, argument, word, dtype](const Index &index) {
                reads_.push_back({argument.value, index});
                return from_word(dtype, Halide::Internal::make_zero(word));
            });
        }
        values.at(result, here);
    }

    struct Read {
        ValueId argument;
        Index index;
    };
    const std::vector<Read> &reads() const { return reads_; }

private:
    std::vector<Read> reads_;
};

bool same_index(const Index &a, const Index &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto &x, const auto &y) { return Halide::Internal::equal(x, y); });
}

/// Returns the buffer dimension of the result along which a read is contiguous in memory; 0: none, or the innermost.
int dimension_across(const Index &read, const Index &here) {
    for (size_t i = 0; !read.empty() && i < here.size(); i++) {
        if (Halide::Internal::equal(read.back(), here[i])) {
            return int(here.size() - 1 - i);
        }
    }
    return 0;
}

/// Chooses the read to transpose: the first one that is not contiguous along the innermost dimension. Its argument must be read at only one
/// index.
std::optional<ReadRecorder::Read> find_read(const std::vector<ReadRecorder::Read> &reads, const Index &here) {
    for (const ReadRecorder::Read &read : reads) {
        bool is_only = std::all_of(reads.begin(), reads.end(), [&](const ReadRecorder::Read &other) {
            return other.argument != read.argument || same_index(other.index, read.index);
        });
        if (is_only && dimension_across(read.index, here) > 0) {
            return read;
        }
    }
    return std::nullopt;
}

/// On a GPU, every tile is full; elements beyond the result repeat the last ones.
void clamp_loops(Index &index, const std::vector<Halide::Var> &vars, const Index &extents) {
    std::map<std::string, Halide::Expr> inside;
    for (size_t i = 0; i < vars.size(); i++) inside[vars[i].name()] = Halide::clamp(vars[i], 0, extents[i] - 1);
    for (Halide::Expr &e : index) e = Halide::Internal::substitute(inside, e);
}

} // namespace

void lower_transpose(Lowering &lowering) {
    LoweredKernel &kernel = lowering.kernel;
    const ValueId result = kernel.program.results.at(0).value;
    const std::vector<Halide::Var> vars = axis_vars(kernel.program.type(result).rank());
    const Index here(vars.begin(), vars.end());
    const std::optional<ReadRecorder::Read> read = find_read(ReadRecorder(lowering, result, here).reads(), here);
    auto &stages = kernel.stages.emplace<TransposeStages>();
    if (read) {
        const Dtype dtype = kernel.program.type(read->argument).dtype;
        Halide::Func rows("rows"), block("block");
        stages = {dimension_across(read->index, here), rows, block};
        Index index = read->index;
        if (lowering.target.has_gpu_feature()) clamp_loops(index, vars, lowering.values.extents(kernel.program.type(result).shape));
        rows(buffer_order(vars)) = to_word(dtype, lowering.values.at(read->argument, index));
        block(buffer_order(vars)) = rows(buffer_order(vars));
        lowering.values.bind(read->argument, [=](const Index &) { return from_word(dtype, block(buffer_order(vars))); });
    }
    add_output(lowering, {0}, vars);
}

} // namespace scalide
