// The size of scalide_options, and the version of the interface.
#include "fixture.h"
#include <cstddef>
#include <cstring>
#include <string>

namespace {

/// The options of a newer header: two fields follow.
struct NewerOptions {
    scalide_options known;
    void *pointer;
    int64_t number;
};

struct Outcome {
    scalide_status status;
    int32_t threads;
    std::string message;
};

/// Creates a context with one thread.
Outcome create(size_t struct_size, int64_t number = 0) {
    char message[400] = "";
    NewerOptions options;
    std::memset(&options, 0, sizeof(options));
    options.known.struct_size = struct_size;
    options.known.threads = 1;
    options.known.message = message;
    options.known.message_size = sizeof(message);
    options.number = number;
    scalide_context *context = nullptr;
    const scalide_status status = scalide_context_create(&options.known, &context);
    const int32_t threads = scalide_thread_count(context);
    scalide_context_destroy(context);
    return {status, threads, message};
}

TEST(options, a_forgotten_struct_size_is_refused) {
    const std::string size = std::to_string(sizeof(scalide_options));
    for (const size_t wrong : {size_t{0}, sizeof(void *), offsetof(scalide_options, message_size)}) {
        const Outcome outcome = create(wrong);
        EXPECT_EQ(outcome.status, SCALIDE_INVALID_ARGUMENT) << wrong;
        EXPECT_EQ(outcome.message, "struct_size must be sizeof(scalide_options), " + size + ", got " + std::to_string(wrong) +
                                       ". Fill the structure with zeros and set options.struct_size = sizeof(scalide_options).");
    }
}

TEST(options, uninitialised_memory_is_refused_without_a_message) {
    const Outcome outcome = create(~size_t{0} / 2);
    EXPECT_EQ(outcome.status, SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(outcome.message, "");
}

TEST(options, of_an_older_header_have_defaults) {
    const Outcome outcome = create(offsetof(scalide_options, cache_folder));
    EXPECT_EQ(outcome.status, SCALIDE_OK);
    EXPECT_EQ(outcome.threads, 1);
}

TEST(options, of_a_newer_header_may_have_only_zeros_that_are_unknown) {
    EXPECT_EQ(create(sizeof(NewerOptions)).status, SCALIDE_OK);
    const Outcome outcome = create(sizeof(NewerOptions), 1);
    EXPECT_EQ(outcome.status, SCALIDE_INVALID_ARGUMENT);
    EXPECT_EQ(outcome.message, "struct_size of scalide_options is " + std::to_string(sizeof(NewerOptions)) + ", but this library knows " +
                                   std::to_string(sizeof(scalide_options)) +
                                   " bytes, and a field behind them is not 0. Link a newer library, or compile the application with the "
                                   "header of this one.");
}

TEST(options, the_interface_has_a_version) { EXPECT_EQ(scalide_interface_version(), SCALIDE_INTERFACE_VERSION); }

} // namespace
