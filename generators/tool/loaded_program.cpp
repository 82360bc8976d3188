#include "tool/loaded_program.h"
#include "emit/c_text.h"
#include "ir/words.h"
#include "scalide/metrics.h"
#include "scalide/plan.h"
#include <fmt/format.h>

namespace scalide {

namespace {

ContextPointer need_context(int32_t device) {
    OpenedContext context = open_context(device);
    if (!context.handle) throw UserError({{}, scalide_device_name(device), context.message, "", ""});
    return std::move(context.handle);
}

/// Memory of a context, which the destructor frees.
class ContextMemory {
public:
    explicit ContextMemory(scalide_context *context) : context_(context) {}
    ContextMemory(ContextMemory &&) = default; // the other one is left without memory
    ~ContextMemory() {
        for (void *memory : taken_) scalide_release(context_, memory);
    }

    /// Returns the array with copies of its data and its scale in the context's memory.
    scalide_array copy_in(scalide_array array) {
        array.data = copy(array.data, bytes_of(array));
        if (array.scale) array.scale = static_cast<float *>(copy(array.scale, sizeof(float)));
        return array;
    }
    void copy_out(const scalide_array &to, const scalide_array &from) const {
        check(scalide_copy_out(context_, to.data, from.data, bytes_of(to)));
        if (to.scale) check(scalide_copy_out(context_, to.scale, from.scale, sizeof(float)));
    }
    void check(scalide_status status) const {
        if (status != SCALIDE_OK) throw UserError({{}, "", scalide_message(context_), "", ""});
    }

private:
    void *copy(const void *from, size_t bytes) {
        void *memory = nullptr;
        check(scalide_allocate(context_, bytes, &memory));
        taken_.push_back(memory);
        check(scalide_copy_in(context_, memory, from, bytes));
        return memory;
    }

    scalide_context *context_;
    std::vector<void *> taken_;
};

std::vector<scalide_array> views_of(std::vector<HostArray> &arrays) {
    std::vector<scalide_array> views;
    for (HostArray &array : arrays) views.push_back(array.view());
    return views;
}

void show_array(void *user, const scalide_traced *buffer, const scalide_array *array) {
    (*static_cast<const Show *>(user))(copy_of(buffer->name, *array));
}

std::span<const scalide_symbol> symbols_of(const scalide_program &program) {
    return {program.symbols, static_cast<size_t>(program.symbol_count)};
}

HostArray empty_array(const scalide_argument_info &info) {
    HostArray array;
    array.name = info.name;
    array.dtype = static_cast<Dtype>(info.dtype);
    array.scaled = info.scaled != 0;
    return array;
}

} // namespace

LoadedProgram::LoadedProgram(const std::filesystem::path &library, const std::string &name, const Join &join)
    : context_(need_context(SCALIDE_CPU)), library_(nullptr, scalide_library_close) {
    scalide_library *loaded = nullptr;
    check(scalide_load(context_.get(), library.c_str(), &loaded));
    library_.reset(loaded);
    program_ = scalide_library_program(context_.get(), loaded, to_identifier(name).c_str());
    if (!program_) throw InternalError(scalide_message(context_.get()));
    const int32_t device = scalide_program_device(program_);
    if (device != SCALIDE_CPU) context_ = need_context(device);
    for (const scalide_symbol &symbol : symbols_of(*program_))
        if (symbol.source == SCALIDE_RANKS) check(join(context_.get(), symbol.name));
}

int LoadedProgram::rank() const {
    for (const scalide_symbol &symbol : symbols_of(*program_))
        if (symbol.source == SCALIDE_RANKS) return scalide_group_rank(context_.get(), symbol.name);
    return 0;
}

void LoadedProgram::check(scalide_status status) const {
    if (status != SCALIDE_OK) throw UserError({{}, "", scalide_message(context_.get()), "", ""});
}

void LoadedProgram::shape_outputs(const std::vector<scalide_argument_info> &infos, std::vector<HostArray> &arrays) const {
    std::vector<scalide_array> views = views_of(arrays);
    check(scalide_shape_outputs(context_.get(), program_, views.data(), views.size()));
    for (size_t i = 0; i < arrays.size(); i++) {
        if (infos[i].role != SCALIDE_OUTPUT) continue;
        arrays[i].shape.assign(views[i].extent, views[i].extent + views[i].rank);
        arrays[i].data.resize(bytes_of(views[i]));
    }
}

scalide_status LoadedProgram::run_bound(scalide_binding *binding, const Show &show, NonFinite *non_finite) const {
    Show shown = show;
    if (!non_finite) return show ? scalide_run_traced(binding, show_array, &shown) : scalide_run(binding);
    scalide_non_finite first = {};
    const scalide_status status = scalide_run_checked(binding, &first);
    if (first.buffer) *non_finite = {first.buffer, first.kernel, static_cast<size_t>(first.step), first.loops ? first.loops : ""};
    return status;
}

struct LoadedProgram::Call {
    std::vector<scalide_argument_info> infos;
    std::vector<HostArray> arrays;
    std::vector<scalide_array> views, copies;
    ContextMemory memory;
    std::unique_ptr<scalide_binding, void (*)(scalide_binding *)> binding;
};

LoadedProgram::Call LoadedProgram::bind(const std::function<HostArray(const std::string &)> &find) const {
    Call call{std::vector<scalide_argument_info>(scalide_argument_count(program_)),
              {},
              {},
              {},
              ContextMemory(context_.get()),
              {nullptr, scalide_binding_destroy}};
    for (size_t i = 0; i < call.infos.size(); i++) {
        check(scalide_describe_argument(program_, i, &call.infos[i]));
        call.arrays.push_back(call.infos[i].role == SCALIDE_OUTPUT ? empty_array(call.infos[i]) : find(call.infos[i].name));
    }
    shape_outputs(call.infos, call.arrays);
    call.views = views_of(call.arrays);
    for (const scalide_array &view : call.views) call.copies.push_back(call.memory.copy_in(view));
    scalide_binding *binding = nullptr;
    check(scalide_bind(context_.get(), program_, call.copies.data(), call.copies.size(), &binding));
    call.binding.reset(binding);
    for (size_t step = 0; step < scalide_step_count(binding); step++) {
        scalide_step_info info = {};
        check(scalide_describe_step(binding, step, &info));
        if (info.notice) fmt::print(stderr, "warning: {}\n", info.notice);
    }
    return call;
}

std::vector<HostArray> LoadedProgram::run(const std::function<HostArray(const std::string &)> &find, const Show &show,
                                          NonFinite *non_finite) const {
    Call call = bind(find);
    check(run_bound(call.binding.get(), show, non_finite));
    return take_results(call);
}

std::vector<HostArray> LoadedProgram::take_results(Call &call) const {
    std::vector<HostArray> results;
    for (size_t i = 0; i < call.infos.size(); i++) {
        if (call.infos[i].role == SCALIDE_INPUT || call.infos[i].role == SCALIDE_CONSTANT) continue;
        call.memory.copy_out(call.views[i], call.copies[i]);
        results.push_back(std::move(call.arrays[i]));
    }
    return results;
}

std::vector<HostArray> LoadedProgram::run_collecting(const std::function<HostArray(const std::string &)> &find,
                                                     std::vector<TensorStatistic> &rows, const std::string &folder) const {
    Call call = bind(find);
    scalide_statistics *statistics = nullptr;
    check(scalide_statistics_create(call.binding.get(), call.copies.data(), call.copies.size(), nullptr, &statistics));
    const std::unique_ptr<scalide_statistics, void (*)(scalide_statistics *)> owned(statistics, scalide_statistics_destroy);
    check(scalide_run_collecting(statistics, 0));
    rows = read_statistics(statistics);
    if (!folder.empty()) write_statistics(folder, statistics);
    return take_results(call);
}

void LoadedProgram::write_statistics(const std::string &folder, scalide_statistics *statistics) const {
    std::vector<scalide_statistic> rows(scalide_statistics_count(program_));
    check(scalide_read_statistics(statistics, rows.data(), rows.size()));
    char message[1024] = "";
    const auto check_metrics = [&](scalide_status status) {
        if (status != SCALIDE_OK) throw UserError({{}, "", message, "", ""});
    };
    const scalide_metrics_options options = {sizeof(options), 0, 0, 1};
    scalide_metrics *metrics = nullptr;
    check_metrics(scalide_metrics_open(folder.c_str(), &options, &metrics, message, sizeof(message)));
    const scalide_status written =
        scalide_metrics_write_statistics(metrics, 0, program_, rows.data(), rows.size(), message, sizeof(message));
    const scalide_status closed = scalide_metrics_close(metrics, written == SCALIDE_OK ? message : nullptr, sizeof(message));
    check_metrics(written == SCALIDE_OK ? closed : written);
}

std::vector<StepCost> LoadedProgram::profile(const std::function<HostArray(const std::string &)> &find, int runs) const {
    const Call call = bind(find);
    std::vector<scalide_step_profile> steps(scalide_step_count(call.binding.get()));
    check(scalide_profile(call.binding.get(), runs, steps.data(), steps.size()));
    std::vector<StepCost> costs;
    for (const scalide_step_profile &step : steps) costs.push_back({step.name, step.seconds, step.bytes});
    return costs;
}

} // namespace scalide
