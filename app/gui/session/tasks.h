#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "app/gui/session/unique_id.h"

namespace kvscope::gui {

/// What is there of something that is computed beside the window. All three may be empty: under way for the first time.
template <class T>
struct TaskResult {
    std::shared_ptr<const T> value;  ///< the newest finished one, which may belong to an earlier stamp
    std::string error;               ///< of the newest finished one
    bool current = false;            ///< value or error belong to the stamp asked for
};

/// Where the results of one question are kept, one for each key. Who asks owns it: a view as its member; a function
/// that several views call, as a static of its own. When it goes, its work is stopped and its results are dropped.
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

/// Work beside the window: no frame waits for the disk or for arithmetic. A key of a slot that is asked with a new
/// stamp is computed again and shows its last result meanwhile.
///
/// The functions given run on worker threads, one per key at a time; only the newest stamp of a key is computed. Work
/// is stopped (reading a trace then throws, trace/interruption.h) when its slot is gone, when the window closes, when
/// the last frames did not ask for it while other work waits, and when another stamp is wanted and it has run for a
/// while. Results that no frame asks for are kept for some seconds. Everything else is called from the window's thread
/// alone.
class Tasks {
 public:
    using Seconds = std::chrono::duration<double>;

    /// @param on_done called on a worker thread whenever a result is there (wakes the window)
    /// @param kept    for how long a result is kept that frames no longer ask for
    explicit Tasks(std::function<void()> on_done, int n_threads = 2, Seconds kept = Seconds(4));
    ~Tasks();
    Tasks(const Tasks&) = delete;
    Tasks& operator=(const Tasks&) = delete;

    /// @param key   empty where the slot has one result alone
    /// @param stamp of everything that the result depends on besides
    template <class T>
    TaskResult<T> ask(const TaskSlot<T>& slot, const std::string& key, const std::string& stamp,
                      std::type_identity_t<std::function<T()>> compute) {
        const Result result =
            ask_any(slot.number_, key, stamp, [compute = std::move(compute)]() -> std::shared_ptr<const void> {
                return std::make_shared<const T>(compute());
            });
        return {std::static_pointer_cast<const T>(result.value), result.error, result.current};
    }

    /// Work that is asked for once, an export: one after the other on a thread of its own, to its end even where the
    /// window is closed before.
    /// @param work  returns what to say
    /// @param ended is given that, or why it failed, by `deliver`; never where the window was closed
    void once(std::function<std::string()> work, std::function<void(const std::string& said, bool is_error)> ended);
    /// Calls `ended` of all that has ended. @returns what was thrown there, for a person to see
    [[nodiscard]] std::vector<std::string> deliver();

    /// Drops what belongs to slots that are gone and what nobody has asked for in the time that results are kept.
    /// @returns after which time there is more to drop, so that a window that sleeps is to draw a frame
    std::optional<Seconds> end_frame();

    /// Keys whose newest stamp has no result yet, and work asked for once that has not ended.
    int n_pending() const;

    /// Blocks until nothing is under way: for tests and screenshots. What was asked for once is then to be delivered.
    void wait() const;

 private:
    struct Result {
        std::shared_ptr<const void> value;
        std::string error;
        bool current = false;
    };
    Result ask_any(const std::shared_ptr<const uint64_t>& slot, const std::string& key, const std::string& stamp,
                   std::function<std::shared_ptr<const void>()>);

    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace kvscope::gui
