#include "tool/groups.h"
#include "expr/error.h"
#include <exception>
#include <thread>
#include <vector>

namespace scalide {

scalide_status join_mpi(scalide_context *context, const char *group) { return scalide_join_mpi(context, group, nullptr); }

RankThreads::RankThreads(int ranks) : ranks_(ranks) {}

Join RankThreads::join(int rank) {
    return [this, rank](scalide_context *context, const char *group) {
        const std::lock_guard lock(mutex_);
        auto found = groups_.find(group);
        if (found == groups_.end()) {
            scalide_thread_group *made = nullptr;
            char message[256] = "";
            if (scalide_thread_group_create(ranks_, 0, &made, message, sizeof message) != SCALIDE_OK)
                throw UserError({{}, group, message, "", ""});
            found =
                groups_
                    .emplace(group,
                             std::unique_ptr<scalide_thread_group, void (*)(scalide_thread_group *)>(made, scalide_thread_group_destroy))
                    .first;
        }
        return scalide_join_threads(context, group, found->second.get(), rank);
    };
}

void run_in_threads(int ranks, const std::function<void(int rank)> &body) {
    std::vector<std::exception_ptr> errors(static_cast<size_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; rank++)
        threads.emplace_back([&, rank] {
            try {
                body(rank);
            } catch (...) {
                errors[static_cast<size_t>(rank)] = std::current_exception();
            }
        });
    for (std::thread &thread : threads) thread.join();
    for (const std::exception_ptr &error : errors)
        if (error) std::rethrow_exception(error);
}

std::string file_of_rank(std::string name, int rank) {
    const std::string mark = "{rank}";
    for (size_t at = name.find(mark); at != std::string::npos; at = name.find(mark, at))
        name.replace(at, mark.size(), std::to_string(rank));
    return name;
}

} // namespace scalide
