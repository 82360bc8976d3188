#include "emit/process.h"
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace scalide {

namespace {

constexpr int child_failed = 70;

struct Child {
    size_t index;
    FILE *output; // an unlinked temporary file: a pipe could fill up and block the child
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

ChildResult to_result(int status, FILE *output, size_t output_bytes) {
    ChildResult result;
    result.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    result.output = tail_of(output, output_bytes);
    std::fclose(output);
    if (WIFSIGNALED(status)) {
        result.reason = "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
    } else if (!result.ok) {
        result.reason = "exit status " + std::to_string(WEXITSTATUS(status));
    }
    return result;
}

// Forks; the child prints into an unlinked file and runs `body`.
std::pair<pid_t, FILE *> start(const std::function<void()> &body) {
    FILE *output = std::tmpfile();
    if (!output) return {-1, nullptr};
    const pid_t parent = getpid(), process = fork();
    if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(child_failed);
        dup2(fileno(output), STDOUT_FILENO);
        dup2(fileno(output), STDERR_FILENO);
        try {
            body();
        } catch (const std::exception &error) {
            std::fprintf(stderr, "%s\n", error.what());
            std::fflush(stderr);
            _exit(child_failed);
        }
        std::fflush(nullptr);
        _exit(0);
    }
    return {process, output};
}

} // namespace

void run_in_children(const std::vector<std::function<void()>> &work, int jobs, const std::function<void(size_t, const ChildResult &)> &done,
                     size_t output_bytes) {
    std::map<pid_t, Child> running;
    size_t next = 0;
    std::fflush(nullptr);
    while (next < work.size() || !running.empty()) {
        if (next < work.size() && running.size() < static_cast<size_t>(jobs)) {
            const auto [process, output] = start(work[next]);
            if (process > 0) {
                running[process] = {next, output};
            } else {
                if (output) std::fclose(output);
                done(next, {false, std::string("no child process could be started: ") + std::strerror(errno), ""});
            }
            next++;
            continue;
        }
        int status = 0;
        const pid_t process = wait(&status);
        const auto found = running.find(process);
        if (found == running.end()) continue;
        const Child child = found->second;
        running.erase(found);
        done(child.index, to_result(status, child.output, output_bytes));
    }
}

bool is_running(int process) { return process > 0 && (kill(process, 0) == 0 || errno != ESRCH); }

ChildResult run_command(const std::vector<std::string> &command, size_t output_bytes) {
    std::vector<char *> arguments;
    for (const std::string &word : command) arguments.push_back(const_cast<char *>(word.c_str()));
    arguments.push_back(nullptr);
    ChildResult result;
    const auto execute = [&] {
        execvp(arguments[0], arguments.data());
        std::fprintf(stderr, "%s: %s\n", arguments[0], std::strerror(errno));
        std::fflush(stderr);
        _exit(127);
    };
    run_in_children(
        {execute}, 1, [&](size_t, const ChildResult &child) { result = child; }, output_bytes);
    return result;
}

} // namespace scalide
