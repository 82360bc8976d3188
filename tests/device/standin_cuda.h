#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

/// An emulated libcuda.so.1: two GPUs whose memory is host memory. It logs every call. It checks what a driver checks: a current context,
/// live handles, no allocation or copy during stream capture. Kernels do nothing, or, with SCALIDE_STANDIN_COMPUTES in the environment, run
/// by the PTX interpreter (tests/support/ptx).
extern "C" {
/// Clears the log. The call of this number (from 0) will fail with this error; -1: none.
void standin_reset(int64_t fail_at, int32_t error);
/// Logs a call of a library that runs on the driver's streams.
void standin_note(const char *call);
/// Calls `work` at once. During stream capture, calls it when the graph is launched.
void standin_compute(const std::function<void()> *work);
/// How many arguments the next launch has, of which this was not said yet: it is written down with their values.
void standin_arguments(size_t count);
/// All calls since the last reset except error queries, such as "cuLaunchKernel first.2 blocks 3 1 1 ...".
size_t standin_count();
const char *standin_call(size_t index);
/// Live handles and allocations.
size_t standin_live();
/// Sets the compute capability of the GPUs. 90 is sm_90, the initial value.
void standin_capability(int32_t capability);
/// Simulates the loss of the GPU: no handle is alive.
void standin_lose();
}
