// A constant that copies share.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace kvscope {

/// A constant value, or none, whose copies share the memory of the value. It takes the 8 bytes of a pointer, half of
/// what std::shared_ptr takes: tables have millions of them. Copies may be used by several threads.
template <class Value>
class Shared {
 public:
    Shared() = default;
    Shared(Value value) : counted_(new Counted{std::move(value)}) {}  // NOLINT(google-explicit-constructor)
    Shared(const Shared& other) : counted_(other.counted_) {
        if (counted_) counted_->n_owners.fetch_add(1, std::memory_order_relaxed);
    }
    Shared(Shared&& other) noexcept : counted_(std::exchange(other.counted_, nullptr)) {}
    Shared& operator=(Shared other) noexcept {
        std::swap(counted_, other.counted_);
        return *this;
    }
    ~Shared() {
        // Acquire: the thread that frees the value sees all that the others did with it.
        if (counted_ && counted_->n_owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete counted_;
    }

    /// Returns nullptr if there is no value.
    [[nodiscard]] const Value* get() const { return counted_ ? &counted_->value : nullptr; }
    /// There must be a value.
    [[nodiscard]] const Value& operator*() const { return counted_->value; }
    [[nodiscard]] const Value* operator->() const { return &counted_->value; }
    [[nodiscard]] explicit operator bool() const { return counted_ != nullptr; }

    /// Compares the values. No value equals only no value.
    [[nodiscard]] friend bool operator==(const Shared& a, const Shared& b) {
        return a.counted_ == b.counted_ || (a && b && *a == *b);
    }

 private:
    struct Counted {
        Value value;
        std::atomic<std::uint32_t> n_owners = 1;
    };

    Counted* counted_ = nullptr;
};

}  // namespace kvscope
