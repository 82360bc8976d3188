#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

/// A stand-in for libcuda.so.1: two cards whose memory is the host's. Every call is written down. It checks what a driver checks: a current
/// context, live handles, no allocation or copy while a stream is captured. Kernels do nothing, or, with SCALIDE_STANDIN_COMPUTES in the
/// environment, what their PTX says (tests/support/ptx).
extern "C" {
/// Forgets the calls. The call of this number (from 0) will fail with this error; -1: none.
void standin_reset(int64_t fail_at, int32_t error);
/// Writes down a call of a library that runs on the driver's streams.
void standin_note(const char *call);
/// Calls `work`, now or, while a stream is captured, when its graph is launched.
void standin_compute(const std::function<void()> *work);
/// How many arguments the next launch has, of which this was not said yet: it is written down with their values.
void standin_arguments(size_t count);
/// All calls since the last reset but the questions about errors, such as "cuLaunchKernel first.2 blocks 3 1 1 ...".
size_t standin_count();
const char *standin_call(size_t index);
/// Handles and memory that are alive.
size_t standin_live();
/// What the cards are from now on: 90 is sm_90, which they begin as.
void standin_capability(int32_t capability);
/// As if the card had fallen off the bus: nothing is alive.
void standin_lose();
}
