#pragma once
#include "tool/arrays.h"
#include "tool/open_context.h"
#include <filesystem>
#include <functional>
#include <memory>

namespace scalide {

using Show = std::function<void(const HostArray &)>;

/// The first result of a step that has an infinity or a NaN; no buffer: there is none.
struct NonFinite {
    std::string buffer, kernel;
    size_t step = 0;
};

/// A generated shared library at work in this process. What the runtime refuses is a UserError in its words.
class LoadedProgram {
public:
    /// `name` is that of the library.
    LoadedProgram(const std::filesystem::path &library, const std::string &name);

    /// Runs once on the inputs and inouts that `find` gives by name; returns the inouts as they are afterwards and the outputs, in the
    /// order of the arguments. `show`, where there is one, gets every array as soon as it is made, intermediate ones too, a scaled one in
    /// its two parts. `non_finite`, where there is one instead, says what was the first result with an infinity or a NaN.
    std::vector<HostArray> run(const std::function<HostArray(const std::string &)> &find, const Show &show = {},
                               NonFinite *non_finite = nullptr) const;

private:
    scalide_status run_bound(scalide_binding *binding, const Show &show, NonFinite *non_finite) const;
    void check(scalide_status status) const;
    void shape_outputs(const std::vector<scalide_argument_info> &infos, std::vector<HostArray> &arrays) const;

    ContextPointer context_;
    std::unique_ptr<scalide_library, void (*)(scalide_library *)> library_;
    const scalide_program *program_ = nullptr;
};

} // namespace scalide
