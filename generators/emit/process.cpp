#include "emit/process.h"
#include "expr/error.h"
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <new>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace scalide {

namespace {

constexpr int child_failed = 70, child_without_memory = 71;
// The longest time between two checks for ended children. In a process with several threads, another thread may receive SIGCHLD.
constexpr timespec longest_wait = {0, 100'000'000};

constexpr const char *check_limits = "Check the limits of processes and open files (ulimit -a) and the free space of the temporary folder, "
                                     "or use fewer jobs (--jobs)";
constexpr const char *free_memory = "If memory ran out, close other programs or use fewer jobs (--jobs)";
constexpr const char *give_time = "Raise --time-limit, or use fewer jobs (--jobs)";

using Clock = std::chrono::steady_clock; // independent of changes of the date

struct Child {
    size_t index;
    FILE *output; // an unlinked temporary file; a pipe could fill up and block the child
    Clock::time_point started;
    bool is_late = false;
};

std::string tail_of(FILE *file, size_t most_bytes) {
    const long limit = static_cast<long>(most_bytes);
    std::fseek(file, 0, SEEK_END);
    const long size = std::ftell(file);
    std::fseek(file, size > limit ? size - limit : 0, SEEK_SET);
    std::string text(static_cast<size_t>(size > limit ? limit : size), '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file));
    return text;
}

void describe(int status, ChildResult &result) {
    result.may_succeed = WIFSIGNALED(status) || WEXITSTATUS(status) == child_without_memory;
    if (WIFSIGNALED(status)) {
        result.reason = "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
        if (WTERMSIG(status) == SIGKILL) result.way_out = free_memory; // Linux kills processes this way if memory is short
        return;
    }
    result.exit_status = WEXITSTATUS(status);
    result.ok = result.exit_status == 0;
    if (!result.ok) result.reason = "exit status " + std::to_string(result.exit_status);
    if (result.exit_status == child_without_memory) result.way_out = free_memory;
}

[[noreturn]] void leave(const char *words, int status) {
    std::fprintf(stderr, "%s\n", words);
    std::fflush(stderr);
    _exit(status);
}

// Exits at once, because LLVM does not survive an exception.
[[noreturn]] void leave_without_memory() { leave("no memory", child_without_memory); }

[[noreturn]] void run_child(const std::function<void()> &body, pid_t parent, FILE *output, const SignalsHeld &signals) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(child_failed);
    setpgid(0, 0); // so that it can be ended with all its child processes
    sigprocmask(SIG_UNBLOCK, &signals.held(), nullptr);
    dup2(fileno(output), STDOUT_FILENO);
    dup2(fileno(output), STDERR_FILENO);
    std::set_new_handler(leave_without_memory);
    try {
        body();
    } catch (const UserError &error) {
        leave(error.what(), child_of_bad_input);
    } catch (const std::bad_alloc &) { // from an allocation that does not call the new-handler
        leave_without_memory();
    } catch (const std::exception &error) {
        leave(error.what(), child_failed);
    }
    std::fflush(nullptr);
    _exit(0);
}

void end(pid_t process) { kill(-process, SIGKILL); }

/// The children of one call.
class Children {
public:
    using Done = std::function<void(size_t, const ChildResult &)>;

    Children(const std::vector<std::function<void()>> &work, const ChildLimits &limits, const Done &done)
        : work_(work), limits_(limits), done_(done) {
        struct sigaction standard = {};
        standard.sa_handler = SIG_DFL; // the parent process may ignore SIGCHLD; then the end of children would not be reported
        sigaction(SIGCHLD, &standard, &child_signal_);
    }
    Children(const Children &) = delete;
    Children &operator=(const Children &) = delete;
    ~Children() {
        for (const auto &[process, child] : running_) {
            end(process);
            waitpid(process, nullptr, 0);
            std::fclose(child.output);
        }
        sigaction(SIGCHLD, &child_signal_, nullptr);
    }

    void run() {
        while (next_ < work_.size() || !running_.empty()) {
            if (next_ < work_.size() && running_.size() < static_cast<size_t>(limits_.jobs)) {
                start(next_++);
            } else if (!take_ended()) {
                wait();
            }
        }
    }

private:
    void start(size_t index) {
        FILE *output = std::tmpfile();
        const pid_t parent = getpid(), process = output ? fork() : -1;
        if (process == 0) run_child(work_[index], parent, output, signals_);
        if (process < 0) {
            const std::string reason = std::string("the child process did not start: ") + std::strerror(errno);
            if (output) std::fclose(output);
            done_(index, {false, 0, reason, "", check_limits});
            return;
        }
        setpgid(process, process); // both processes call this, because either may be first
        running_[process] = {index, output, Clock::now()};
    }

    /// Reports a child that has ended. Returns false if there is none.
    bool take_ended() {
        for (const auto &[process, child] : running_) {
            int status = 0;
            const pid_t ended = waitpid(process, &status, WNOHANG);
            if (ended != process && (ended == 0 || errno != ECHILD)) continue;
            finish(process, status);
            return true;
        }
        return false;
    }

    void finish(pid_t process, int status) {
        const Child child = running_.at(process);
        running_.erase(process);
        ChildResult result;
        describe(status, result);
        result.output = tail_of(child.output, limits_.output_bytes);
        std::fclose(child.output);
        if (child.is_late) {
            result.reason = "stopped after " + std::to_string(limits_.seconds) + " s (--time-limit)";
            result.way_out = give_time;
            result.may_succeed = false;
        }
        done_(child.index, result);
    }

    void wait() {
        const int signal = sigtimedwait(&signals_.held(), nullptr, &longest_wait);
        if (signal > 0 && signal != SIGCHLD) interrupt(signal);
        for (auto &[process, child] : running_) {
            if (limits_.seconds == 0 || Clock::now() - child.started < std::chrono::seconds(limits_.seconds)) continue;
            child.is_late = true;
            end(process);
        }
    }

    [[noreturn]] void interrupt(int signal) {
        raise(signal); // the signal stays pending until no SignalsHeld blocks it
        for (const auto &[process, child] : running_) end(process);
        while (!running_.empty()) {
            int status = 0;
            const pid_t process = running_.begin()->first;
            waitpid(process, &status, 0);
            finish(process, status);
        }
        throw Interrupted(signal);
    }

    const std::vector<std::function<void()>> &work_;
    const ChildLimits limits_;
    const Done &done_;
    const SignalsHeld signals_;
    struct sigaction child_signal_ = {};
    std::map<pid_t, Child> running_;
    size_t next_ = 0;
};

} // namespace

Interrupted::Interrupted(int signal) : runtime_error(std::string("interrupted: ") + strsignal(signal)) {}

SignalsHeld::SignalsHeld() {
    sigemptyset(&held_);
    sigaddset(&held_, SIGCHLD);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction action = {};
        if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&held_, signal);
    }
    sigprocmask(SIG_BLOCK, &held_, &before_);
}

SignalsHeld::~SignalsHeld() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

void run_in_children(const std::vector<std::function<void()>> &work, const ChildLimits &limits,
                     const std::function<void(size_t, const ChildResult &)> &done) {
    std::fflush(nullptr);
    Children(work, limits, done).run();
}

bool is_running(int process) { return process > 0 && (kill(process, 0) == 0 || errno != ESRCH); }

ChildResult run_command(const std::vector<std::string> &command, const ChildLimits &limits) {
    std::vector<char *> arguments;
    for (const std::string &word : command) arguments.push_back(const_cast<char *>(word.c_str()));
    arguments.push_back(nullptr);
    ChildResult result;
    const auto execute = [&] {
        execvp(arguments[0], arguments.data());
        leave((command[0] + ": " + std::strerror(errno)).c_str(), 127);
    };
    run_in_children({execute}, limits, [&](size_t, const ChildResult &child) { result = child; });
    return result;
}

} // namespace scalide
