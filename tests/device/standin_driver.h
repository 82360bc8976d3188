#pragma once
#include "standin_cuda.h"
#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
#include <vector>

namespace scalide::test {

/// While it lives, the emulated driver executes kernels.
class Computing {
public:
    Computing() { setenv("SCALIDE_STANDIN_COMPUTES", "1", 1); }
    ~Computing() { unsetenv("SCALIDE_STANDIN_COMPUTES"); }
    Computing(const Computing &) = delete;
    Computing &operator=(const Computing &) = delete;
};

/// The emulated driver, loaded as the runtime loads it.
class Standin {
public:
    Standin() : library_(dlopen("libcuda.so.1", RTLD_NOW)) {
        if (!library_) throw std::runtime_error(dlerror());
        find(reset, "standin_reset");
        find(arguments, "standin_arguments");
        find(count_, "standin_count");
        find(call_, "standin_call");
        find(live, "standin_live");
        find(lose, "standin_lose");
        find(capability, "standin_capability");
    }

    std::vector<std::string> calls() const {
        std::vector<std::string> all;
        for (size_t i = 0; i < count_(); i++) all.emplace_back(call_(i));
        return all;
    }
    decltype(&standin_reset) reset;
    decltype(&standin_arguments) arguments;
    decltype(&standin_live) live;
    decltype(&standin_lose) lose;
    decltype(&standin_capability) capability;

private:
    template<typename F>
    void find(F &function, const char *name) const {
        function = reinterpret_cast<F>(dlsym(library_, name));
        if (!function) throw std::runtime_error(name);
    }

    void *library_;
    decltype(&standin_count) count_;
    decltype(&standin_call) call_;
};

} // namespace scalide::test
