#pragma once

#include <filesystem>

namespace kvscope::gui::testing {

inline const std::filesystem::path small_model =
    std::filesystem::path(KVSCOPE_TEST_DATA) / "models" / "llama3-gqa-sharded";
inline constexpr int patience = 60'000;  ///< number of frames in which a job on a test model ends

}  // namespace kvscope::gui::testing
