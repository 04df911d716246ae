#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace kvscope::gui {

/// What a view gets for a question whose answer is computed elsewhere. All three may be empty: under way for the first
/// time.
template <class T>
struct Answer {
    std::shared_ptr<const T> value;  ///< the newest finished one, which may belong to an earlier stamp
    std::string error;               ///< of the newest finished one
    bool current = false;            ///< value or error belong to the stamp asked for
};

/// Work beside the window: no frame waits for the disk or for arithmetic. Results are kept under a slot; a slot that is
/// asked with a new stamp computes again and shows its last result meanwhile.
///
/// The functions given run on worker threads, one per slot at a time; only the newest stamp of a slot is computed.
/// Slots that were not asked for a while are dropped. Everything else is called from the window's thread alone.
class Tasks {
 public:
    /// @param on_done called on a worker thread whenever a result is there (wakes the window)
    explicit Tasks(std::function<void()> on_done, int n_threads = 2);
    ~Tasks();
    Tasks(const Tasks&) = delete;
    Tasks& operator=(const Tasks&) = delete;

    template <class T>
    Answer<T> ask(const std::string& slot, const std::string& stamp, std::function<T()> compute) {
        const Result result = ask_any(slot, stamp, [compute = std::move(compute)]() -> std::shared_ptr<const void> {
            return std::make_shared<const T>(compute());
        });
        return {std::static_pointer_cast<const T>(result.value), result.error, result.current};
    }

    /// Work that is asked for once, an export: one after the other on a thread of its own, to its end even where the
    /// window is closed before.
    /// @param work  returns what to say
    /// @param ended is given that, or why it failed, by `deliver`; never where the window was closed
    void once(std::function<std::string()> work, std::function<void(const std::string& said, bool is_error)> ended);
    /// Calls `ended` of what has ended.
    void deliver();

    /// Drops what nobody asked for during the last frames.
    void end_frame();

    /// Slots whose newest stamp has no result yet, and work asked for once that has not ended.
    int n_pending() const;

    /// Blocks until nothing is under way: for tests and screenshots. What was asked for once is then to be delivered.
    void wait() const;

 private:
    struct Result {
        std::shared_ptr<const void> value;
        std::string error;
        bool current = false;
    };
    Result ask_any(const std::string& slot, const std::string& stamp, std::function<std::shared_ptr<const void>()>);

    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace kvscope::gui
