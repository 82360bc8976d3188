#include "tool/tool.h"

/// What jemalloc reads where it is linked: memory that passes free stays for the next pass. Giving it back to the system and taking it
/// anew was a twelfth of the time of all passes over 48 transformer layers (1.58 and 1.46 s, Xeon 2.6 GHz, 2026-11-24), for 30 MB.
extern "C" const char *malloc_conf;
const char *malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1";

int main(int argc, char **argv) { return scalide::tool_main(argc, argv); }
