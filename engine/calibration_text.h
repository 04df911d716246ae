#pragma once

namespace kvscope::engine {

extern const char* const calibration_text;

}  // namespace kvscope::engine
