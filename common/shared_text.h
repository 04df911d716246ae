// Text that copies share.
#pragma once

#include <fmt/format.h>

#include <compare>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "common/shared.h"

namespace kvscope {

/// A constant text whose copies share its characters. A table of results has many equal texts, which would otherwise
/// take most of its memory, and most of the time of reading and freeing it. Copies may be used by several threads.
class SharedText {
 public:
    SharedText() = default;
    SharedText(std::string text) {  // NOLINT(google-explicit-constructor): used like std::string
        if (!text.empty()) text_ = std::move(text);
    }
    SharedText(std::string_view text) : SharedText(std::string(text)) {}  // NOLINT(google-explicit-constructor)
    SharedText(const char* text) : SharedText(std::string(text)) {}       // NOLINT(google-explicit-constructor)

    [[nodiscard]] const std::string& string() const {
        static const std::string none;
        return text_ ? *text_ : none;
    }
    operator const std::string&() const { return string(); }  // NOLINT(google-explicit-constructor)
    operator std::string_view() const { return string(); }    // NOLINT(google-explicit-constructor)

    [[nodiscard]] bool empty() const { return !text_; }
    [[nodiscard]] std::size_t size() const { return string().size(); }
    [[nodiscard]] bool starts_with(std::string_view start) const { return string().starts_with(start); }
    void clear() { text_ = {}; }

    [[nodiscard]] friend bool operator==(const SharedText& a, const SharedText& b) { return a.text_ == b.text_; }
    [[nodiscard]] friend std::strong_ordering operator<=>(const SharedText& a, const SharedText& b) {
        return a.text_.get() == b.text_.get() ? std::strong_ordering::equal : a.string() <=> b.string();
    }
    template <class Text>
    requires std::is_convertible_v<const Text&, std::string_view>
    [[nodiscard]] friend bool operator==(const SharedText& a, const Text& b) {
        return std::string_view(a.string()) == std::string_view(b);
    }
    [[nodiscard]] friend std::string operator+(const SharedText& a, std::string_view b) {
        return a.string() + std::string(b);
    }
    [[nodiscard]] friend std::string operator+(std::string a, const SharedText& b) { return std::move(a) + b.string(); }

 private:
    Shared<std::string> text_;  ///< no value if empty
};

}  // namespace kvscope

template <>
struct fmt::formatter<kvscope::SharedText> : fmt::formatter<std::string_view> {
    [[nodiscard]] auto format(const kvscope::SharedText& text, fmt::format_context& context) const {
        return fmt::formatter<std::string_view>::format(text.string(), context);
    }
};
