#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvscope::engine {

/// N of "cuda:N", 0 of "cuda"; nothing for what is no card's name.
std::optional<int> card_number(std::string_view name);

/// Whether a device may be called that: "cpu", "auto", "cuda", "cuda:0", "cuda:1", …
bool is_device_name(std::string_view name);

/// A device of this machine that a model can be run on.
struct DeviceChoice {
    std::string name;  ///< "cpu", "auto", "cuda:0"
    std::string text;  ///< "NVIDIA H100, 61.2 of 79.2 GiB free"
};

}  // namespace kvscope::engine
