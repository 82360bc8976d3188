/// Include this header in a source with generators that have loops and branches.
#pragma once
#include "frontend/loops.h"
#include "scalide/generator.h"
