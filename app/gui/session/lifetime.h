#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace kvscope::gui {

/// Says of a Lifetime whether it has ended. One that was made of none never ends.
class LifetimeWatch {
 public:
    LifetimeWatch() = default;
    explicit LifetimeWatch(const std::shared_ptr<const void>& token) : token_(token), is_of_one_(true) {}
    bool has_ended() const { return is_of_one_ && token_.expired(); }

 private:
    std::weak_ptr<const void> token_;
    bool is_of_one_ = false;
};

/// A member of what hands out functions that are kept beyond the frame (a dialog's answer, an entry of the palette):
/// they may be called when it is gone. Ends with the object it is a member of; a copy of that has one of its own. The
/// window's thread alone.
class Lifetime {
 public:
    Lifetime() = default;
    Lifetime(const Lifetime& /*other*/) {}
    Lifetime& operator=(const Lifetime& /*other*/) { return *this; }
    ~Lifetime() = default;

    LifetimeWatch watch() const { return LifetimeWatch(token_); }
    /// What was handed out until now does nothing any more, as if the object had gone.
    void begin_anew() { token_ = std::make_shared<char>(); }

    /// @returns the function as one that does nothing once this has ended; what it would return is then empty, 0 or
    /// false
    template <class Function>
    auto guard(Function function) const {
        return [watch = watch(), function = std::move(function)](const auto&... arguments) {
            using Result = std::invoke_result_t<const Function&, decltype(arguments)...>;
            if constexpr (std::is_void_v<Result>) {
                if (!watch.has_ended()) function(arguments...);
            } else {
                return watch.has_ended() ? Result() : function(arguments...);
            }
        };
    }

 private:
    std::shared_ptr<const void> token_ = std::make_shared<char>();
};

}  // namespace kvscope::gui
