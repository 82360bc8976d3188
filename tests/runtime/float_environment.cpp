// Runs in hosts that flush subnormal numbers, round elsewhere or unmask exceptions: the same bits, and the host finds its modes again.
#include "fixture.h"
#include "halide_hooks.h"
#include <atomic>
#include <cfenv>
#include <cstring>
#include <thread>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

using namespace scalide::test;

namespace {

/// The modes and exception flags of this thread.
unsigned state() {
#if defined(__x86_64__)
    return _mm_getcsr();
#else
    return static_cast<unsigned>(std::fegetround() | std::fetestexcept(FE_ALL_EXCEPT) << 16);
#endif
}

struct Host {
    const char *name;
    void (*enter)();
};
constexpr Host hosts[] = {
#if defined(__x86_64__)
    {"FTZ", [] { _mm_setcsr(_mm_getcsr() | 0x8000); }},
    {"DAZ", [] { _mm_setcsr(_mm_getcsr() | 0x0040); }},
    {"FTZ and DAZ", [] { _mm_setcsr(_mm_getcsr() | 0x8040); }},
    {"unmasked exceptions", [] { _mm_setcsr(_mm_getcsr() & ~0x1F80u); }},
#endif
    {"upward", [] { std::fesetround(FE_UPWARD); }},
    {"downward", [] { std::fesetround(FE_DOWNWARD); }},
    {"toward zero", [] { std::fesetround(FE_TOWARDZERO); }},
    {"a flag", [] { std::feraiseexcept(FE_UNDERFLOW); }},
};

/// This thread is in the host's modes; the test's come back at its end, which fails when they changed meanwhile.
class InHost {
public:
    explicit InHost(const Host &host) : name_(host.name) {
        std::fegetenv(&before_);
        host.enter();
        entered_ = state();
    }
    InHost(const InHost &) = delete;
    InHost &operator=(const InHost &) = delete;
    ~InHost() {
        const unsigned left = state();
        std::fesetenv(&before_);
        EXPECT_EQ(left, entered_) << name_;
    }

private:
    const char *name_;
    std::fenv_t before_;
    unsigned entered_;
};

/// Rows whose results are subnormal, rounded, infinite and NaN.
struct Numbers : Sample {
    Numbers() : Sample(1024) {
        for (size_t i = 0; i < x.size(); ++i) {
            const float third = static_cast<float>(static_cast<int>(i % 101) - 50) / 3;
            const float factors[] = {1e-39f, 1, 1e-38f, 3e37f};
            x[i] = third * factors[i / 4 % 4];
        }
        w = {0.1f, 0.7f, 1e-3f, 33};
    }

    std::vector<uint32_t> bits() const {
        std::vector<float> all(y);
        all.insert(all.end(), w.begin(), w.end());
        all.push_back(mean);
        all.push_back(w_scale);
        std::vector<uint32_t> words;
        for (const float &number : all) std::memcpy(&words.emplace_back(), &number, sizeof(number));
        return words;
    }
};

void run(Numbers &numbers, int32_t threads, const Host &creation, const Host &use) {
    scalide_options options = {};
    options.struct_size = sizeof(options);
    options.threads = threads;
    scalide_context *context = nullptr;
    scalide_binding *binding = nullptr;
    {
        const InHost host(creation);
        ASSERT_EQ(scalide_context_create(&options, &context), SCALIDE_OK);
        ASSERT_EQ(scalide_bind(context, sample_program(), numbers.arrays.data(), numbers.arrays.size(), &binding), SCALIDE_OK);
    }
    {
        const InHost host(use);
        ASSERT_EQ(scalide_set_arguments(binding, numbers.arrays.data(), numbers.arrays.size()), SCALIDE_OK);
        ASSERT_EQ(scalide_run(binding), SCALIDE_OK);
        scalide_binding_destroy(binding);
        scalide_context_destroy(context);
    }
}

constexpr Host quiet = {"none", [] {}};

/// The state of each of two threads within a parallel loop.
struct Seen {
    std::atomic<int> arrived;
    unsigned states[2];
};

int look(void *, int index, uint8_t *closure) {
    Seen &seen = *reinterpret_cast<Seen *>(closure);
    seen.states[index] = state();
    ++seen.arrived;
    while (seen.arrived < 2) std::this_thread::yield(); // each index has a thread of its own
    return 0;
}

} // namespace

TEST(runtime, gives_the_same_bits_in_any_float_mode) {
    Numbers expected;
    run(expected, 1, quiet, quiet);
    for (const int32_t threads : {1, 2, 4}) {
        for (const Host &host : hosts) {
            Numbers used, created;
            run(used, threads, quiet, host);
            run(created, threads, host, quiet);
            EXPECT_EQ(used.bits(), expected.bits()) << host.name << ", " << threads << " threads";
            EXPECT_EQ(created.bits(), expected.bits()) << "created under " << host.name << ", " << threads << " threads";
        }
    }
}

TEST(runtime, threads_compute_in_the_modes_of_programs) {
    static Seen seen;
    const auto kernel = [](void **arguments) {
        seen.arrived = 0;
        return halide_do_par_for(*static_cast<void **>(arguments[0]), look, 0, 2, reinterpret_cast<uint8_t *>(&seen));
    };
    scalide_program program = *sample_program();
    std::vector<scalide_step> steps(program.steps, program.steps + program.step_count);
    steps[0].kernel = kernel;
    program.steps = steps.data();
    std::fesetenv(FE_DFL_ENV);
    const unsigned expected = state();
    for (const Host &host : hosts) {
        Sample sample;
        scalide_status status;
        {
            const InHost entered(host);
            Context context(2);
            scalide_binding *binding = nullptr;
            status = bind(context, &program, sample, &binding);
            if (status == SCALIDE_OK) status = scalide_run(binding);
            scalide_binding_destroy(binding);
        }
        ASSERT_EQ(status, SCALIDE_OK);
        EXPECT_EQ(seen.states[0], expected) << host.name;
        EXPECT_EQ(seen.states[1], expected) << host.name;
    }
}

TEST(runtime, reads_a_scalar_in_any_float_mode) {
    Context context;
    Sample sample;
    sample.w_scale = 1e-40f;
    scalide_binding *binding = nullptr;
    ASSERT_EQ(bind(context, sample_program(), sample, &binding), SCALIDE_OK);
    for (const Host &host : hosts) {
        double scale = 0;
        {
            const InHost entered(host);
            EXPECT_EQ(scalide_read_scalar(binding, "w.scale", &scale), SCALIDE_OK);
        }
        EXPECT_EQ(scale, double(1e-40f)) << host.name;
    }
    scalide_binding_destroy(binding);
}

TEST(runtime, leaves_the_modes_of_the_host_when_a_run_fails) {
    scalide_program program = *sample_program();
    std::vector<scalide_step> steps(program.steps, program.steps + program.step_count);
    steps[0].kernel = [](void **arguments) {
        static_cast<char *>(halide_malloc(*static_cast<void **>(arguments[0]), SIZE_MAX / 2))[0] = 1;
        return 0;
    };
    program.steps = steps.data();
    for (const Host &host : hosts) {
        Context context;
        Sample sample;
        scalide_binding *binding = nullptr;
        ASSERT_EQ(bind(context, &program, sample, &binding), SCALIDE_OK);
        {
            const InHost entered(host);
            EXPECT_EQ(scalide_run(binding), SCALIDE_OUT_OF_MEMORY);
        }
        scalide_binding_destroy(binding);
    }
}
