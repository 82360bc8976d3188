#pragma once

namespace scalide {

/// The command line `scalide`. A program that registers generators links this too: then PROGRAM may be the name of one of them.
/// Returns 0; 1 after a mistake of the user (printed with its place); 2 after a command line that does not parse; 70 after an error in
/// Scalide itself.
int tool_main(int argc, char **argv);

} // namespace scalide
