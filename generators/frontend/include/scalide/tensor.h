/// The generated functions of operators include this header.
#pragma once
#include "frontend/tensor.h"
