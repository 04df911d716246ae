#pragma once

#include <filesystem>
#include <memory>

#include "engine/tokenizer/tokenizer.h"

namespace kvscope::checkpoint {

/// Opens a tokenizer.json with a BPE model. @throws CheckpointError with the file and the field; Stopped
[[nodiscard]] std::unique_ptr<Tokenizer> open_json_tokenizer(const std::filesystem::path& directory,
                                                             const std::stop_token& stop);

}  // namespace kvscope::checkpoint
