#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>
#include <utility>

namespace kvscope::policies {

/// What policies find out of a model's weights alone and what takes long to find: worked out once, kept as long as the
/// model, shared by all prompts and runs. Thread-safe: who asks for what is being worked out waits for it.
class ModelMemo {
 public:
    /// @param key what it is, with all that it depends on besides the weights; a policy's begins with its name
    /// @param make works it out from the weights alone, so that it is the same whoever asks first
    /// @throws what `make` throws; nothing is kept then
    template <class T>
    std::shared_ptr<const T> get(const std::string& key, const std::function<T()>& make) {
        const auto entry = entry_of({typeid(T), key});
        const std::lock_guard lock(entry->mutex);
        if (!entry->value) entry->value = std::make_shared<const T>(make());
        return std::static_pointer_cast<const T>(entry->value);
    }

 private:
    struct Entry {
        std::mutex mutex;
        std::shared_ptr<const void> value;
    };
    using Key = std::pair<std::type_index, std::string>;

    std::shared_ptr<Entry> entry_of(const Key& key) {
        const std::lock_guard lock(mutex_);
        auto& entry = entries_[key];
        if (!entry) entry = std::make_shared<Entry>();
        return entry;
    }

    std::mutex mutex_;
    std::map<Key, std::shared_ptr<Entry>> entries_;
};

}  // namespace kvscope::policies
