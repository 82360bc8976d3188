#pragma once
#include "scalide/groups.h"
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace scalide {

/// Makes a context a rank of a group. Returns the status of the runtime, whose message says what failed.
using Join = std::function<scalide_status(scalide_context *context, const char *group)>;

/// The ranks are the processes that MPI started.
scalide_status join_mpi(scalide_context *context, const char *group);

/// Ranks that are threads of this process. Each group of a program has all of them.
class RankThreads {
public:
    explicit RankThreads(int ranks);
    /// Returns how the thread of rank number `rank` joins groups.
    Join join(int rank);

private:
    int ranks_;
    std::mutex mutex_;
    std::map<std::string, std::unique_ptr<scalide_thread_group, void (*)(scalide_thread_group *)>> groups_; ///< by name
};

/// Runs body(rank) in a thread for each rank and waits for all. Throws the error of the first rank that failed by itself.
void run_in_threads(int ranks, const std::function<void(int rank)> &body);

/// Returns `name` with the number of the rank instead of each `{rank}`.
std::string file_of_rank(std::string name, int rank);

} // namespace scalide
