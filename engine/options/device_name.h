#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvscope::engine {

/// Returns N for "cuda:N" and 0 for "cuda"; nullopt for other names.
[[nodiscard]] std::optional<int> card_number(std::string_view name);

/// Whether the name has the form of a device: "cpu", "auto", "cuda", "cuda:0", …
[[nodiscard]] bool is_device_name(std::string_view name);

struct DeviceChoice {
    std::string name;  ///< such as "cpu", "auto" or "cuda:0"
    std::string text;  ///< such as "NVIDIA H100, 61.2 of 79.2 GiB free"
};

}  // namespace kvscope::engine
