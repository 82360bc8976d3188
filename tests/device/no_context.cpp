// Prints the status and the words of a CUDA context that cannot be.
#include "scalide/scalide.h"
#include <cstdio>

int main() {
    char words[1024] = "";
    scalide_options options = {};
    options.struct_size = sizeof(options);
    options.device = SCALIDE_CUDA;
    options.message = words;
    options.message_size = sizeof(words);
    scalide_context *context = nullptr;
    const scalide_status status = scalide_context_create(&options, &context);
    std::printf("%d: %s\n", status, words);
    scalide_context_destroy(context);
    return 0;
}
