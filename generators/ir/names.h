#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace scalide {

struct Value;

/// An index of the names in a list of values. It finds a free name without a search through all values. Each call reads the values that
/// were appended since the last call. Code that renames a value must call rename(). A copy is empty until its first use.
class Names {
public:
    Names();
    Names(const Names &);
    Names(Names &&) noexcept;
    Names &operator=(const Names &);
    Names &operator=(Names &&) noexcept;
    ~Names();

    /// Returns a free name for the value that is appended next: `name`, or `name` with a number from 1 on. Numbers only increase, so the
    /// old name of a renamed value is not used again.
    std::string claim(const std::vector<Value> &values, const std::string &name);
    /// Registers a new name for value number `value`. Returns false if another value has the name.
    bool rename(const std::vector<Value> &values, int value, const std::string &name);

private:
    struct Index;
    Index &index(const std::vector<Value> &values);

    std::unique_ptr<Index> index_;
};

} // namespace scalide
