#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string>

#include "common/stopped.h"
#include "kernels/cuda_library.h"

namespace kvscope::engine {

/// Calls `action` for a single run and returns why it failed; empty if it succeeded. Lack of memory, a failed device
/// and cancellation concern all runs and are thrown.
template <class Action>
[[nodiscard]] std::string catch_single_run_failure(Action action) {
    try {
        action();
    } catch (const Stopped&) {
        throw;
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const c10::OutOfMemoryError&) {
        throw;
    } catch (const c10::AcceleratorError&) {
        throw;
    } catch (const kernels::cuda::Failed&) {
        throw;
    } catch (const std::exception& error) {
        const std::string message = error.what();
        return message.empty() ? "an error without a message" : message;
    }
    return {};
}

}  // namespace kvscope::engine
