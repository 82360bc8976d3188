#pragma once
#include "emit/card_use.h"
#include <Halide.h>
#include <filesystem>

namespace scalide {

/// The compute capabilities that kernels are compiled for by default. Later GPUs use the PTX.
inline constexpr std::array cuda_cards = {80, 89, 90, 100, 120};

/// NVIDIA's assembler, and the program that combines its outputs.
struct CudaTools {
    std::filesystem::path ptxas, fatbinary;
    std::string version; ///< the version that ptxas prints
};

/// Searches in $CUDA_HOME/bin, then on PATH. Throws UserError that tells where to get the tools.
CudaTools find_cuda_tools();

/// How the PTX of CUDA kernels is assembled.
struct CudaAssembly {
    CudaTools tools;
    std::vector<int> cards;
};

/// Returns the compute capabilities that a user named ("90", "100"), or cuda_cards if there are none. Throws UserError for an unknown one.
std::vector<int> chosen_cards(const std::vector<std::string> &cards);

/// True if a CUDA module launches anything. A kernel whose arrays never have an element launches nothing.
bool has_device_code(const Halide::Module &module);
/// Returns the PTX in a CUDA module of Halide. Throws InternalError if there is none.
std::string ptx_of(const Halide::Module &module);

/// Assembles the PTX of a module for each compute capability, in `folder`. Combines the results and the PTX for the newest instruction set
/// in a fat binary. Files of PTX have the name of the module, which the assembler's messages repeat. `resident` is passed to rewrite_ptx().
/// Adds a row for each architecture and launch to `uses`. Throws InternalError with the output of the assembler.
std::string assemble(const Halide::Module &module, const CudaAssembly &assembly, const std::filesystem::path &folder,
                     std::vector<CardUse> &uses, int resident = 0);

/// Returns the module with `payload` instead of its PTX. At run time, the driver loads the payload.
Halide::Module with_device_code(const Halide::Module &module, const std::string &payload);

} // namespace scalide
