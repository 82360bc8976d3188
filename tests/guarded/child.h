#pragma once
#include <functional>
#include <string>

namespace scalide {

/// The outcome of work in a child process. `wrong` is empty if the work succeeded. `place` is the last place that the work reported.
struct ChildReport {
    std::string place, wrong;
};

/// Runs `work` in a child process, because a faulty kernel may kill the process. `work` reports its place (a kernel, sizes) with `tell` and
/// throws if something is wrong.
ChildReport in_child(const std::function<void(const std::function<void(const std::string &place)> &tell)> &work);

} // namespace scalide
