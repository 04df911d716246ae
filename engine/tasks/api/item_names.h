#pragma once

#include <array>

namespace kvscope::engine {

/// Names of things, for texts that tasks make up. The order must not change, because seeds select the names.
inline constexpr std::array item_names{"lantern", "anchor",  "compass", "kettle", "violin", "meadow",
                                       "harbor",  "orchard", "saddle",  "pepper", "marble", "walnut",
                                       "candle",  "pillow",  "ribbon",  "basket", "hammer", "feather",
                                       "blanket", "mirror",  "bottle",  "ladder", "pencil", "window"};

}  // namespace kvscope::engine
