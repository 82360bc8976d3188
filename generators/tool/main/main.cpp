#include "tool/tool.h"

/// Options for jemalloc, if it is linked: memory that a pass frees is kept for the next pass. Otherwise a twelfth of the time of all passes
/// over 48 transformer layers would go into returning memory to the system. Measured: 1.58 s, and 1.46 s with these options, for 30 MB more
/// memory (Xeon 2.6 GHz, 2026-11-24).
extern "C" const char *malloc_conf;
const char *malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1";

int main(int argc, char **argv) { return scalide::tool_main(argc, argv); }
