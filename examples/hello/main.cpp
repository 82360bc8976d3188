#include "line.h"
#include <cstdio>
#include <scalide/scalide.hpp>

using namespace scalide::runtime;

int main() {
    try {
        const Context context;
        State state(context, line_program());
        Binding step = Binding::allocate(context, line_program(), {{"n", 4}}, state);
        step["x"].set(std::vector<float>{0, 1, 2, 3});
        step["y"].set(std::vector<float>{1, 3, 5, 7});
        for (int i = 0; i < 200; i++) step.run();
        std::printf("y = %.3f * x + %.3f, loss %.6f\n", state["w"].item(), state["b"].item(), step["loss"].item());
    } catch (const std::exception &error) {
        std::fprintf(stderr, "hello: %s\n", error.what());
        return 1;
    }
}
