#include "guarded/child.h"
#include <algorithm>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace scalide {

namespace {

constexpr unsigned most_seconds = 300;

/// In memory that the child shares.
struct Notes {
    char place[1 << 16], wrong[1 << 12];
};

template<size_t N>
void write_down(char (&note)[N], const std::string &text) {
    note[text.copy(note, N - 1)] = 0;
}

std::string words_of(int status) {
    if (WIFSIGNALED(status)) return std::string("signal ") + strsignal(WTERMSIG(status));
    return WEXITSTATUS(status) == 0 ? "" : "exit status " + std::to_string(WEXITSTATUS(status));
}

} // namespace

ChildReport in_child(const std::function<void(const std::function<void(const std::string &place)> &tell)> &work) {
    void *memory = mmap(nullptr, sizeof(Notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    Notes &notes = *static_cast<Notes *>(memory);
    const pid_t child = fork();
    if (child == 0) {
        alarm(most_seconds);
        try {
            work([&](const std::string &place) { write_down(notes.place, place); });
        } catch (const std::exception &error) {
            write_down(notes.wrong, error.what());
        }
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    const std::string death = words_of(status);
    const ChildReport report{notes.place, death.empty() ? notes.wrong : death};
    munmap(memory, sizeof(Notes));
    return report;
}

} // namespace scalide
