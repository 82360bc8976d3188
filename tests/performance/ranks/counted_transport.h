#pragma once
#include "scalide/groups.h"
#include <cstdint>
#include <vector>

/// A transport that counts the messages of another one.
namespace scalide::measuring {

class CountedTransport {
public:
    struct Call {
        bool is_collect;
        uint64_t bytes; ///< to each rank
    };

    explicit CountedTransport(const scalide_transport &inner) : inner_(inner) {}
    CountedTransport(const CountedTransport &) = delete;

    std::vector<Call> calls;

    /// The bytes that this rank sends to other ranks.
    uint64_t sent() const {
        uint64_t bytes = 0;
        for (const Call &call : calls) bytes += static_cast<uint64_t>(inner_.ranks - 1) * call.bytes;
        return bytes;
    }

    /// The table refers to this object, which must live as long as the context.
    scalide_transport table() { return {sizeof(scalide_transport), inner_.ranks, inner_.rank, this, all_gather, all_to_all, abort, close}; }

private:
    static CountedTransport &of(void *self) { return *static_cast<CountedTransport *>(self); }
    static int all_gather(void *self, const void *send, void *receive, size_t bytes, char *message, size_t message_size) {
        of(self).calls.push_back({true, bytes});
        return of(self).inner_.all_gather(of(self).inner_.self, send, receive, bytes, message, message_size);
    }
    static int all_to_all(void *self, const void *send, void *receive, size_t bytes, char *message, size_t message_size) {
        of(self).calls.push_back({false, bytes});
        return of(self).inner_.all_to_all(of(self).inner_.self, send, receive, bytes, message, message_size);
    }
    static void abort(void *self, const char *why) { of(self).inner_.abort(of(self).inner_.self, why); }
    static void close(void *self) { of(self).inner_.close(of(self).inner_.self); }

    const scalide_transport inner_;
};

} // namespace scalide::measuring
