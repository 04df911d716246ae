#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/unique_id.h"

namespace kvscope::gui {

/// Shows a message to the user.
using Notice = std::function<void(const std::string& text, bool is_error)>;

/// Result of a background computation. `value` and `error` are empty until the first computation has finished.
template <class T>
struct TaskResult {
    std::shared_ptr<const T> value;  ///< newest result, possibly of an earlier stamp
    std::string error;               ///< error of the newest computation; empty on success
    bool current = false;            ///< `value` or `error` belongs to the requested stamp
};

/// Owns the results of one computation by key. The destructor stops the computation and drops the results.
template <class T>
class TaskSlot {
 public:
    TaskSlot() = default;
    TaskSlot(const TaskSlot&) = delete;
    TaskSlot& operator=(const TaskSlot&) = delete;

 private:
    friend class Tasks;
    std::shared_ptr<const uint64_t> number_ = std::make_shared<const uint64_t>(unique_id());
};

/// Runs computations on worker threads. A new stamp for a slot and key starts a new computation. Until it ends,
/// requests return the previous result. Computations that are no longer requested are stopped. UI thread only.
class Tasks {
 public:
    using Seconds = std::chrono::duration<double>;

    /// @param on_done called on a worker thread after each computation, to draw a frame
    /// @param kept how long results are kept after the last request
    explicit Tasks(std::function<void()> on_done, int n_threads = 2, Seconds kept = Seconds(4));
    ~Tasks();

    /// Returns the newest result and starts the computation if the stamp is new.
    /// @param key empty if the slot has only one result
    /// @param stamp changes with all other inputs of the computation
    /// @param compute returns a T; called with a std::stop_token, if it takes one, and may then throw Stopped
    template <class T, class Compute>
    TaskResult<T> ask(const TaskSlot<T>& slot, const std::string& key, const std::string& stamp, Compute compute) {
        const Result result =
            ask_any(slot.number_, key, stamp,
                    [compute = std::move(compute)](const std::stop_token& stop) -> std::shared_ptr<const void> {
                        if constexpr (std::is_invocable_v<const Compute&, const std::stop_token&>)
                            return std::make_shared<const T>(compute(stop));
                        else
                            return std::make_shared<const T>(compute());
                    });
        return {std::static_pointer_cast<const T>(result.value), result.error, result.current};
    }

    /// Runs `work` (e.g. an export) exactly once on a separate thread, even if the app is closed meanwhile. deliver()
    /// calls `ended` with the message that `work` returned, or with its error.
    void once(std::function<std::string()> work, Notice ended);
    /// Calls `ended` of all finished work. Returns the messages of exceptions that `ended` threw.
    [[nodiscard]] std::vector<std::string> deliver();

    /// Drops expired results. Returns the time until the next result expires, when the app should draw a frame.
    std::optional<Seconds> end_frame();

    [[nodiscard]] int n_pending() const;

    /// Blocks until all work has finished, for tests and screenshots. Call deliver() afterwards.
    void wait() const;

 private:
    struct Result {
        std::shared_ptr<const void> value;
        std::string error;
        bool current = false;
    };
    using AnyCompute = std::function<std::shared_ptr<const void>(const std::stop_token&)>;
    [[nodiscard]] Result ask_any(const std::shared_ptr<const uint64_t>& slot, const std::string& key,
                                 const std::string& stamp, AnyCompute compute);

    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace kvscope::gui
