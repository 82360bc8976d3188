#pragma once
#include "transforms/numerics/collect_statistics.h"
#include <functional>

namespace scalide {

/// A loop of a program with a known number of steps, and the tensors in its body of which statistics can be collected.
struct LoopSites {
    size_t node; ///< the number of the loop in its program
    std::vector<StatisticsSite> sites;
    std::vector<LoopSites> loops; ///< in the body
};

/// Finds the loops of a program. `directions`: of the whole program.
std::vector<LoopSites> loop_sites(const Program &program, const Directions &directions, const Rulebook &rulebook,
                                  const std::map<std::string, NamedTensor> &source);

/// Calls visit(site) for the sites of loops and of the loops in them.
void visit_sites(const std::vector<LoopSites> &loops, const std::function<void(const StatisticsSite &site)> &visit);

/// Adds results to a body for sites of it, and returns the new entries. `first` is the number of the first entry.
using CollectSites = std::function<std::vector<CollectedStatistic>(Program &body, const std::vector<StatisticsSite> &sites, size_t first)>;

/// Collects the statistics of the tensors in a loop as the statistics of the stacks of their arrays in all steps. Only numbers are stacked:
/// the body gives the numbers of each step, and nodes after the loop join them, which become results of the program. `first` is the number
/// of the first entry.
std::vector<CollectedStatistic> collect_in_loop(Program &program, const LoopSites &loop, const Rulebook &rulebook, size_t first,
                                                const CollectSites &collect);

} // namespace scalide
