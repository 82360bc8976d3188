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

    bool contains(const std::vector<Value> &values, const std::string &name);
    /// `name` itself, or `name` followed by the first number, from 1 on, that makes it a name no value has.
    std::string fresh(const std::vector<Value> &values, const std::string &name);
    /// Value number `value` is about to get this name, which no value has.
    void rename(const std::vector<Value> &values, int value, const std::string &name);

private:
    struct Index;
    Index &index(const std::vector<Value> &values);

    std::unique_ptr<Index> index_;
};

} // namespace scalide
