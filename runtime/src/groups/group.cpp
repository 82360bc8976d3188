#include "groups/group.h"
#include <cstring>

namespace scalide {

namespace {

int copy_own(void *, const void *send, void *receive, size_t bytes, char *, size_t) {
    std::memcpy(receive, send, bytes);
    return 0;
}

void ignore_abort(void *, const char *) {}
void ignore_close(void *) {}

} // namespace

bool check_transport(const scalide_transport &transport, Text &failure) {
    if (transport.struct_size != sizeof(transport)) {
        failure << "struct_size must be sizeof(scalide_transport), " << uint64_t(sizeof(transport)) << ", got "
                << uint64_t(transport.struct_size) << ". Set transport.struct_size = sizeof(scalide_transport).";
        return false;
    }
    if (transport.ranks < 1 || transport.ranks > SCALIDE_MAX_RANKS) {
        failure << "ranks must be in [1, " << SCALIDE_MAX_RANKS << "], got " << transport.ranks << '.';
        return false;
    }
    if (transport.rank < 0 || transport.rank >= transport.ranks) {
        failure << "rank must be in [0, " << transport.ranks - 1 << "], got " << transport.rank << '.';
        return false;
    }
    const struct {
        const char *name;
        bool is_there;
    } functions[] = {{"all_gather", transport.all_gather != nullptr},
                     {"all_to_all", transport.all_to_all != nullptr},
                     {"abort", transport.abort != nullptr},
                     {"close", transport.close != nullptr}};
    for (const auto &[name, is_there] : functions) {
        if (is_there) continue;
        failure << name << " must not be NULL.";
        return false;
    }
    return true;
}

scalide_transport lone_transport() { return {sizeof(scalide_transport), 1, 0, nullptr, copy_own, copy_own, ignore_abort, ignore_close}; }

} // namespace scalide
