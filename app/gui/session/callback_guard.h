#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace kvscope::gui {

/// Tells whether a Lifetime has ended. A default-constructed watch never reports an end.
class LifetimeWatch {
 public:
    LifetimeWatch() = default;
    explicit LifetimeWatch(const std::shared_ptr<const void>& token) : token_(token), is_of_one_(true) {}
    [[nodiscard]] bool has_ended() const { return is_of_one_ && token_.expired(); }

 private:
    std::weak_ptr<const void> token_;
    bool is_of_one_ = false;
};

/// Protects callbacks that may be called after their object is gone, e.g. from a dialog. Make the lifetime a member of
/// the object. A copied object gets a lifetime of its own. UI thread only.
class Lifetime {
 public:
    Lifetime() = default;
    Lifetime(const Lifetime& /*other*/) {}
    // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): copies nothing
    Lifetime& operator=(const Lifetime& /*other*/) { return *this; }
    ~Lifetime() = default;

    [[nodiscard]] LifetimeWatch watch() const { return LifetimeWatch(token_); }
    /// Disables all callbacks that were guarded so far.
    void begin_anew() { token_ = std::make_shared<char>(); }

    /// Returns a function that calls `function` while this lifetime lasts. Later calls return a default value.
    template <class Function>
    [[nodiscard]] auto guard(Function function) const {
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
