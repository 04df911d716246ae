#pragma once

#include <exception>
#include <stop_token>

namespace kvscope {

/// Thrown by work after a stop request. Not an error: finished results stay valid.
struct Stopped : std::exception {
    [[nodiscard]] const char* what() const noexcept override { return "the work was stopped"; }
};

inline void throw_if_stopped(const std::stop_token& stop) {
    if (stop.stop_requested()) throw Stopped();
}

}  // namespace kvscope
