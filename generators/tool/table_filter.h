#pragma once
#include "tool/common.h"
#include <set>

namespace scalide {

/// What a row of a table is about. A row may be about several tensors.
struct RowSubject {
    std::string tensor, scope;
};

/// Returns what a row is about: its member `subjects`, or its members `tensor` and `scope`, if it has one.
template<typename Row>
std::vector<RowSubject> subjects_of(const Row &row) {
    if constexpr (requires { row.subjects; }) {
        return row.subjects;
    } else if constexpr (requires { row.scope; }) {
        return {{row.tensor, row.scope}};
    } else {
        return {{row.tensor, ""}};
    }
}

/// The options that choose rows of tables by the tensor and the scope.
class TableFilter {
public:
    /// Adds the options. Returns them, so that a command can restrict them.
    std::vector<CLI::Option *> add_to(CLI::App &command);

    bool is_given() const { return !tensor_.empty() || !scope_.empty(); }

    /// Removes the rows of which no subject matches. Throws UserError if the tables had rows, but no row matches.
    template<typename... Rows>
    void apply(Rows &...tables) const {
        if (!is_given()) return;
        Names names;
        const auto fails = [&](const auto &row) { return !matches(subjects_of(row), names); };
        if ((std::erase_if(tables, fails) + ...) > 0 && (tables.empty() && ...)) fail(names);
    }

private:
    struct Names {
        std::set<std::string> tensors, scopes;
    };
    bool matches(const std::vector<RowSubject> &subjects, Names &names) const;
    [[noreturn]] void fail(const Names &names) const;

    std::string tensor_, scope_; ///< globs; empty: all
};

} // namespace scalide
