#pragma once
#include "emit/card_use.h"
#include <Halide.h>
#include <filesystem>

namespace scalide {

/// The cards that kernels are compiled for when nothing else is asked, by compute capability. Later ones get PTX.
inline constexpr std::array cuda_cards = {80, 89, 90, 100, 120};

/// NVIDIA's assembler and the program that joins its results.
struct CudaTools {
    std::filesystem::path ptxas, fatbinary;
    std::string version; ///< what ptxas prints of itself
};

/// In $CUDA_HOME/bin or on PATH. Throws UserError that says where to get them.
CudaTools find_cuda_tools();

/// How kernels for CUDA become code of cards.
struct CudaAssembly {
    CudaTools tools;
    std::vector<int> cards;
};

/// The cards that a user named ("90", "100"), all of cuda_cards when there are none. Throws UserError for a card that is not there.
std::vector<int> chosen_cards(const std::vector<std::string> &cards);

/// Whether a module for CUDA launches anything: kernels of arrays that never have an element do not.
bool has_device_code(const Halide::Module &module);
/// The PTX that Halide put into a module for CUDA. Throws InternalError when there is none.
std::string ptx_of(const Halide::Module &module);

/// Assembles the PTX of a module for each card, in `folder`, and joins the results and the PTX of the newest instruction set to a fat
/// binary; `resident` as for rewrite_ptx. Adds a row for each card and launch to `uses`. Throws InternalError with the assembler's words.
std::string assemble(const Halide::Module &module, const CudaAssembly &assembly, const std::filesystem::path &folder,
                     std::vector<CardUse> &uses, int resident = 0);

/// The module with `payload` in place of its PTX: what the driver is given at run time.
Halide::Module with_device_code(const Halide::Module &module, const std::string &payload);

} // namespace scalide
