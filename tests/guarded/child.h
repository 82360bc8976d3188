#pragma once
#include <functional>
#include <string>

namespace scalide {

/// What became of work in a child process. `wrong` is empty when all went well; `place` is the last that the work told.
struct ChildReport {
    std::string place, wrong;
};

/// Runs `work` in a child process, which may die of what it does. It tells where it is (a kernel, sizes), and throws when something is
/// wrong.
ChildReport in_child(const std::function<void(const std::function<void(const std::string &place)> &tell)> &work);

} // namespace scalide
