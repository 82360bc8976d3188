#include "transforms/fusion/merge/sums.h"
#include "expr/base_operators.h"
#include "ir/shape.h"
#include "transforms/fusion/groups/legality.h"
#include <algorithm>
#include <limits>

namespace scalide {

namespace {

/// With fewer rows, blocks of 16 rows would be fewer than four for each of 128 multiprocessors.
constexpr int64_t least_rows = 8192;
/// A warp computes shorter rows, and each warp would then need its own sums. For longer rows, shared memory cannot hold two arrays for two
/// rows at a time.
constexpr int64_t least_columns = 1025, most_columns = 4096;
/// Sums of all columns stay in registers: 32 in each of 256 threads. More would spill.
constexpr int64_t most_kept = 8192;

class SumMerger {
public:
    explicit SumMerger(Groups &groups) : groups_(groups) {}

    void merge() {
        for (int column = 0; column < groups_.size(); ++column) {
            if (!groups_.is_alive(column) || !is_worthwhile(groups_[column])) continue;
            for (int row : groups_.neighbours(column)) {
                if (!takes(row, column)) continue;
                groups_.merge(row, column, groups_[row]);
                break;
            }
        }
    }

private:
    const Program &program() const { return groups_.program(); }

    static bool is_within(const Extent &extent, int64_t least, int64_t most) {
        return extent.is_static() && extent.value() >= least && extent.value() <= most;
    }

    /// True if the program requests it for any shape.
    bool is_asked() const {
        const auto setting = program().attributes.find("sums");
        return setting != program().attributes.end() && setting->second.word == "with_rows";
    }

    /// True for sums over the rows of one array. Elementwise arithmetic may precede the sums (on the array's shape) and follow them (on the
    /// shape of one row).
    bool is_worthwhile(const Group &group) const {
        if (group.kind != KernelKind::column || group.moves || group.kept.size() != 1) return false;
        const Extent rows = element_count({group.iteration.begin(), group.iteration.end() - 1});
        const bool is_large =
            is_within(rows, least_rows, std::numeric_limits<int64_t>::max()) && is_within(group.kept[0], least_columns, most_columns);
        return (is_large || is_asked()) && rows != group.kept[0] &&
               std::ranges::all_of(group.nodes, [&](int node) { return walks(program().nodes[node], group); });
    }

    bool walks(const Node &node, const Group &group) const {
        const Extents &result = program().type(node.results[0]).shape;
        if (find_base_operator(node.op)->shape != Shape::reduce) return result == group.kept || without_ones(result) == group.iteration;
        return result == group.kept && without_ones(program().type(node.operands[0]).shape) == group.iteration;
    }

    bool takes(int row, int column) const {
        const Group &rows = groups_[row];
        return rows.kind == KernelKind::row && !rows.moves && rows.iteration == groups_[column].iteration &&
               rows.kept.size() + 1 == rows.iteration.size() && reads_the_same(row, column) && keeps_all(row, column) &&
               !groups_.has_path(column, row) && !groups_.has_path_around(row, column) && why_apart(groups_, row, column).empty();
    }

    /// True if the sums of all columns fit into registers, or if the program requests it anyway.
    bool keeps_all(int row, int column) const {
        const auto sums = [&](int group) {
            return std::ranges::count_if(groups_[group].nodes, [&](int node) {
                const Node &n = program().nodes[node];
                return find_base_operator(n.op)->shape == Shape::reduce && program().type(n.results[0]).shape == groups_[column].kept;
            });
        };
        return is_asked() || (sums(row) + sums(column)) * groups_[column].kept[0].value() <= most_kept;
    }

    /// True if the sums read, element by element, what the row kernel computes. Otherwise both must read the same array.
    bool reads_the_same(int row, int column) const {
        const std::vector<Read> between = groups_.reads_between(row, column);
        if (!between.empty()) return std::ranges::all_of(between, [](const Read &read) { return read.access == Access::same; });
        return share_an_array(groups_, row, column);
    }

    Groups &groups_;
};

} // namespace

void merge_sums(Groups &groups) { SumMerger(groups).merge(); }

} // namespace scalide
