#include "tool/tool.h"

int main(int argc, char **argv) { return scalide::tool_main(argc, argv); }
