/// What the generated functions of operators include: tensors of the DSL.
#pragma once
#include "frontend/tensor.h"
