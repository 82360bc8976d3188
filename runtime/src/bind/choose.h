#pragma once
#include "bind/check.h"
#include "bind/prepared.h"
#include "bind/symbol_table.h"

/// The choice among the variants of a program. They are a tree: below the program are its variants for CPUs and GPUs, and below each of
/// these are its forms for values of symbols.
namespace scalide {

/// What a caller binds. Without constants, bind prepares those of the program.
struct Request {
    scalide_context *context;
    const scalide_program *program;
    const scalide_array *arrays;
    size_t count;
    scalide_constants *constants;
};

/// What a binding consists of before it is allocated.
struct Choice {
    const scalide_program *program; ///< which the binding runs
    SymbolTable symbols;
    HeldConstants constants;

    explicit Choice(const Request &request) : program(request.program), symbols(request.context), constants(request.constants) {}
};

/// Checks a program and replaces it by its best variant for this CPU and the context's GPU, if it has one.
scalide_status choose_program(scalide_context *context, const scalide_program **program);
/// Chooses the form of a program for this machine and for the values of the symbols, which it computes, and gets the constants. Checks all
/// programs on the way, and the arrays.
scalide_status choose_form(const Request &request, Choice &choice);

} // namespace scalide
