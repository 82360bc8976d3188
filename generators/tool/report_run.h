#pragma once
#include "tool/run_log.h"
#include <nlohmann/json_fwd.hpp>

namespace scalide {

/// Returns what a page shows of a run. Numbers of tensors by steps are bytes in base64, see report_run.cpp and pages/report_data.js.
nlohmann::ordered_json describe_run(const RunLog &log);
/// Returns the metrics alone, for a run that is only compared.
nlohmann::ordered_json describe_metrics(const RunLog &log);

} // namespace scalide
