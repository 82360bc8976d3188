// What the static library needs from outside and gives to it, as nm sees it.
#include <cstdio>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <sstream>
#include <string>

namespace {

std::string run(const std::string &command) {
    const std::unique_ptr<FILE, int (*)(FILE *)> pipe(popen(command.c_str(), "r"), pclose);
    std::string output;
    char line[4096];
    while (pipe && std::fgets(line, sizeof(line), pipe.get())) output += line;
    return output;
}

/// Names of the library's symbols of these types (nm's letters).
std::set<std::string> symbols(const std::string &types) {
    std::istringstream lines(run(std::string(SCALIDE_NM) + " -P " SCALIDE_RUNTIME_LIBRARY));
    std::set<std::string> names;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string name, type;
        if (words >> name >> type && type.size() == 1 && types.find(type) != std::string::npos) names.insert(name);
    }
    return names;
}

bool begins_with(const std::string &text, const char *prefix) { return text.rfind(prefix, 0) == 0; }

// No abort, exit, printing, exceptions, operator new, or anything else that is not in this list.
const std::set<std::string> allowed = {
    "_GLOBAL_OFFSET_TABLE_",
    "__errno_location",
    "__sched_cpucount",
    "_setjmp",
    "aligned_alloc",
    "clock_gettime",
    "close",
    "closedir",
    "dl_iterate_phdr",
    "dlclose",
    "dlerror",
    "dlinfo",
    "dlopen",
    "dlsym",
    "fclose",
    "fcntl",
    "fcntl64",
    "fegetenv", // where neither x86-64 nor AArch64 is
    "fesetenv",
    "flock",
    "fopen",
    "fread",
    "free",
    "fstat",
    "fstat64",
    "fsync",
    "ftruncate",
    "ftruncate64",
    "fwrite",
    "getenv",
    "getpid",
    "longjmp",
    "memchr",
    "memcmp",
    "memcpy",
    "memfd_create",
    "memmove",
    "memset",
    "mkdir",
    "mmap",
    "munmap",
    "nanosleep",
    "open",
    "open64",
    "opendir",
    "pread",
    "pread64",
    "pthread_cond_broadcast",
    "pthread_cond_destroy",
    "pthread_cond_init",
    "pthread_cond_signal",
    "pthread_cond_timedwait",
    "pthread_cond_wait",
    "pthread_condattr_destroy",
    "pthread_condattr_init",
    "pthread_condattr_setclock",
    "pthread_create",
    "pthread_join",
    "pthread_mutex_destroy",
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_once",
    "pthread_self",
    "pthread_sigmask",
    "readdir",
    "readdir64",
    "remove",
    "rename",
    "sched_getaffinity",
    "sched_yield",
    "sigdelset",
    "sigfillset",
    "snprintf",
    "stat",
    "strchr",
    "strcmp",
    "strcspn",
    "strerror_r",
    "strlen",
    "strncmp",
    "strncpy",
    "strtod",
    "syscall",
    "sysconf",
    "unlink",
    "write",
};
constexpr const char *sanitizers[] = {"__asan_", "__odr_asan", "__tsan_", "__ubsan_"};

bool is_sanitizer(const std::string &name) {
    for (const char *prefix : sanitizers) {
        if (begins_with(name, prefix)) return true;
    }
    return false;
}

} // namespace

TEST(runtime, needs_nothing_that_aborts_prints_or_throws) {
    const std::set<std::string> defined = symbols("TDBRWV"), needed = symbols("U");
    ASSERT_EQ(needed.count("aligned_alloc"), 1u) << "nm must work";
    for (const std::string &name : needed) {
        EXPECT_TRUE(defined.count(name) || allowed.count(name) || is_sanitizer(name)) << name;
    }
}

TEST(runtime, defines_only_its_own_names) {
    for (const std::string &name : symbols("TDBR")) {
        const bool own = begins_with(name, "scalide_") || begins_with(name, "_ZN7scalide") || begins_with(name, "_ZNK7scalide");
        EXPECT_TRUE(own || is_sanitizer(name)) << name;
    }
    const std::set<std::string> weak = symbols("W");
    for (const char *hook : {"halide_do_par_for", "halide_malloc", "halide_free", "halide_error"}) EXPECT_EQ(weak.count(hook), 1u) << hook;
}
