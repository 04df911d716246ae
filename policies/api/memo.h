#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>
#include <utility>

namespace kvscope::policies {

/// Thread-safe store of expensive values. If several threads request a missing value, one computes it.
class Memo {
 public:
    /// Returns the stored value, or computes and stores it.
    /// @param key identifies the value and everything that it depends on; starts with the policy's name
    template <class T>
    [[nodiscard]] std::shared_ptr<const T> get(const std::string& key, const std::function<T()>& make) {
        const auto entry = entry_of({typeid(T), key});
        const std::lock_guard lock(entry->mutex);
        if (!entry->value) entry->value = std::make_shared<const T>(make());
        return std::static_pointer_cast<const T>(entry->value);
    }

    void keep_latest(size_t n) {
        const std::lock_guard lock(mutex_);
        while (entries_.size() > n)
            entries_.erase(std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
                return a.second->asked < b.second->asked;
            }));
    }

 private:
    struct Entry {
        std::mutex mutex;
        std::shared_ptr<const void> value;
        uint64_t asked = 0;  ///< sequence number of the latest request
    };
    using Key = std::pair<std::type_index, std::string>;

    [[nodiscard]] std::shared_ptr<Entry> entry_of(const Key& key) {
        const std::lock_guard lock(mutex_);
        auto& entry = entries_[key];
        if (!entry) entry = std::make_shared<Entry>();
        entry->asked = ++n_asked_;
        return entry;
    }

    std::mutex mutex_;
    std::map<Key, std::shared_ptr<Entry>> entries_;
    uint64_t n_asked_ = 0;
};

/// Values that depend on a model's weights alone and live as long as the model.
class ModelMemo : public Memo {};

}  // namespace kvscope::policies
