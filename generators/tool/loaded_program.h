#pragma once
#include "tool/arrays.h"
#include "tool/groups.h"
#include "tool/open_context.h"
#include "tool/statistics_report.h"
#include <filesystem>
#include <functional>
#include <memory>

namespace scalide {

using Show = std::function<void(const HostArray &)>;

/// The first result of a step that contains an infinity or a NaN. Without a buffer, there is none.
struct NonFinite {
    std::string buffer, kernel;
    size_t step = 0;
    std::string loops = {}; ///< "step 17 of scan h"; empty: in no loop
};

/// The cost of a step, see scalide_step_profile.
struct StepCost {
    std::string kernel;
    double seconds;
    uint64_t bytes;
};

/// A generated shared library that is loaded in this process. An error of the runtime becomes a UserError with the runtime's message.
class LoadedProgram {
public:
    /// `name` is the name of the library. The context joins each group of the program.
    LoadedProgram(const std::filesystem::path &library, const std::string &name, const Join &join = scalide_join_alone);
    /// Returns the number of this rank in the first group of the program; 0 without groups.
    int rank() const;

    /// Runs once on the inputs and inouts that `find` returns by name. Returns the new inouts and the outputs, in the order of the
    /// arguments. If `show` is given, it receives every array as soon as it is computed, including intermediate arrays. A scaled array
    /// arrives as two parts. If `non_finite` is given instead, it receives the first result with an infinity or a NaN.
    std::vector<HostArray> run(const std::function<HostArray(const std::string &)> &find, const Show &show = {},
                               NonFinite *non_finite = nullptr) const;

    /// Runs step 0 of a program that was built with statistics, as run() does. `rows` receives its statistics. With the name of a folder,
    /// they are also written there, as the Metrics of the runtime write them.
    std::vector<HostArray> run_collecting(const std::function<HostArray(const std::string &)> &find, std::vector<TensorStatistic> &rows,
                                          const std::string &folder) const;

    /// Runs `runs` times on the arrays that `find` returns by name. Returns the fastest time of each step.
    std::vector<StepCost> profile(const std::function<HostArray(const std::string &)> &find, int runs) const;

private:
    struct Call; ///< the arrays of one call, and the binding to copies of them in the memory of the context
    Call bind(const std::function<HostArray(const std::string &)> &find) const;
    std::vector<HostArray> take_results(Call &call) const;
    void write_statistics(const std::string &folder, scalide_statistics *statistics) const;
    scalide_status run_bound(scalide_binding *binding, const Show &show, NonFinite *non_finite) const;
    void check(scalide_status status) const;
    void shape_outputs(const std::vector<scalide_argument_info> &infos, std::vector<HostArray> &arrays) const;

    ContextPointer context_;
    std::unique_ptr<scalide_library, void (*)(scalide_library *)> library_;
    const scalide_program *program_ = nullptr;
};

} // namespace scalide
