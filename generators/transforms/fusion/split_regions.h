#pragma once
#include "ir/program.h"
#include <functional>

namespace scalide {

/// True for a node that runs between the kernels of a program: a loop, a branch, or a collective.
bool is_barrier(const Node &node);

/// Splits each program that owns regions, and each region, at its nodes with regions and at its collectives. The nodes between them become
/// the regions of `straight` nodes, which fusion treats as programs. A straight region overwrites an inout argument of the program around
/// it if nothing reads the old array later. Otherwise a straight region at the end copies the new value there. A carry of a loop is
/// overwritten only where nodes update some of its elements; another carry has a second array. A program without regions stays as it is.
Program split_at_regions(const Program &program);

/// Returns true if a loop with this body, which is split, has one array for the carry whose new value is `result`: a straight region
/// overwrites it, or a loop that has one array for it, or nothing changes it.
bool is_updated_in_place(const Program &body, const Result &result);

/// Maps a straight region. `is_in_loop`: it is a part of a step of a loop.
using MapStraight = std::function<Program(const Program &straight, bool is_in_loop)>;

/// Applies f to the regions of all straight nodes. f gets the symbols, sub-programs and attributes of the outermost program. It must keep
/// the arguments and the results. A program without regions is one straight region.
Program map_straight(const Program &program, const MapStraight &f);

} // namespace scalide
