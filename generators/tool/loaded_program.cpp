#include "tool/loaded_program.h"
#include "emit/plan_text.h"

namespace scalide {

namespace {

scalide_context *make_context() {
    scalide_context *context = nullptr;
    if (scalide_context_create(nullptr, &context) != SCALIDE_OK) throw InternalError("no runtime context");
    return context;
}

std::vector<scalide_array> views_of(std::vector<HostArray> &arrays) {
    std::vector<scalide_array> views;
    for (HostArray &array : arrays) views.push_back(array.view());
    return views;
}

void show_array(void *user, const char *name, const scalide_array *array) { (*static_cast<const Show *>(user))(copy_of(name, *array)); }

HostArray empty_array(const scalide_argument_info &info) {
    HostArray array;
    array.name = info.name;
    array.dtype = static_cast<Dtype>(info.dtype);
    array.scaled = info.scaled != 0;
    return array;
}

} // namespace

LoadedProgram::LoadedProgram(const std::filesystem::path &library, const std::string &name)
    : context_(make_context(), scalide_context_destroy), library_(nullptr, scalide_library_close) {
    scalide_library *loaded = nullptr;
    check(scalide_load(context_.get(), library.c_str(), &loaded));
    library_.reset(loaded);
    program_ = scalide_library_program(context_.get(), loaded, to_identifier(name).c_str());
    if (!program_) throw InternalError(scalide_message(context_.get()));
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
        size_t bytes = scalide_dtype_size(views[i].dtype);
        for (int64_t extent : arrays[i].shape) bytes *= static_cast<size_t>(extent);
        arrays[i].data.resize(bytes);
    }
}

std::vector<HostArray> LoadedProgram::run(const std::function<HostArray(const std::string &)> &find, const Show &show) const {
    std::vector<scalide_argument_info> infos(scalide_argument_count(program_));
    std::vector<HostArray> arrays;
    for (size_t i = 0; i < infos.size(); i++) {
        check(scalide_describe_argument(program_, i, &infos[i]));
        arrays.push_back(infos[i].role == SCALIDE_OUTPUT ? empty_array(infos[i]) : find(infos[i].name));
    }
    shape_outputs(infos, arrays);
    const std::vector<scalide_array> views = views_of(arrays);
    scalide_binding *binding = nullptr;
    check(scalide_bind(context_.get(), program_, views.data(), views.size(), &binding));
    Show shown = show;
    const scalide_status status = show ? scalide_run_traced(binding, show_array, &shown) : scalide_run(binding);
    scalide_binding_destroy(binding);
    check(status);
    std::vector<HostArray> results;
    for (size_t i = 0; i < infos.size(); i++) {
        if (infos[i].role != SCALIDE_INPUT) results.push_back(std::move(arrays[i]));
    }
    return results;
}

} // namespace scalide
