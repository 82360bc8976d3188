#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace scalide {

struct Value;

/// An index of the names in a list of values, so that a fresh one is found without a look at all of them. It reads values that were
/// appended since it was last asked; whoever changes a name tells it. A copy starts empty and is made when it is first asked.
class Names {
public:
    Names();
    Names(const Names &);
    Names(Names &&) noexcept;
    Names &operator=(const Names &);
    Names &operator=(Names &&) noexcept;
    ~Names();

    /// The name of the value that is appended next: `name` itself, or `name` followed by a number, from 1 on, that makes it one that no
    /// value has. Numbers count up: the name that a renamed value had is not given again.
    std::string claim(const std::vector<Value> &values, const std::string &name);
    /// Value number `value` is about to get this name; false where a value has it.
    bool rename(const std::vector<Value> &values, int value, const std::string &name);

private:
    struct Index;
    Index &index(const std::vector<Value> &values);

    std::unique_ptr<Index> index_;
};

} // namespace scalide
