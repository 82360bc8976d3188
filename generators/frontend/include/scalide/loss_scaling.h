/// Include this header in a source with generators that scale their loss.
#pragma once
#include "frontend/loss_scaling.h"
#include "scalide/generator.h"
