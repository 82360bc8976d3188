/// What a file with generators includes: the DSL, and one function for each operator of the rulebook (generated at build time).
#pragma once
#include "frontend/generator.h"
#include "frontend/reductions.h"
#include "frontend/tree.h"
#include "scalide/operators.h"
