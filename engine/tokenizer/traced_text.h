#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::checkpoint {

/// A part of a text. `ends`, if requested, gives the end of each byte's original character, or 0 for added bytes.
struct TracedView {
    std::string_view text;
    const uint32_t* ends = nullptr;

    [[nodiscard]] TracedView part(size_t begin, size_t end) const {
        return {text.substr(begin, end - begin), ends ? ends + begin : nullptr};
    }
    [[nodiscard]] uint32_t end_of(size_t at) const { return ends ? ends[at] : 0; }
};

class TracedText {
 public:
    explicit TracedText(bool is_traced) : is_traced_(is_traced) {}

    void append(TracedView from) {
        text_ += from.text;
        if (is_traced_) ends_.insert(ends_.end(), from.ends, from.ends + from.text.size());
    }
    void append(std::string_view bytes, uint32_t end) {
        text_ += bytes;
        if (is_traced_) ends_.resize(text_.size(), end);
    }
    void reserve(size_t bytes) {
        text_.reserve(bytes);
        if (is_traced_) ends_.reserve(bytes);
    }
    [[nodiscard]] size_t size() const { return text_.size(); }
    /// Valid until this object is changed or moved.
    [[nodiscard]] TracedView view() const { return {text_, is_traced_ ? ends_.data() : nullptr}; }

 private:
    std::string text_;
    std::vector<uint32_t> ends_;
    bool is_traced_;
};

}  // namespace kvscope::checkpoint
