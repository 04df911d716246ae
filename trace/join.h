// The parts of a finished trace into one file.
#pragma once

#include <filesystem>

#include "trace/part_folder.h"

namespace kvscope::trace {

/// Joins the parts of `folder` into a file within it, synced and then renamed to `output` with
/// complete = 1. The caller holds the folder's lock and no h5::Guard, which is taken for one part at a time.
/// Throws std::invalid_argument where numbers have gaps or the model is missing; WriteFailed; ReadFailed for a part
/// that cannot be read now; DamagedTrace for one that was damaged since, which was set aside.
void join_parts(const std::filesystem::path& folder, const std::filesystem::path& output);

}  // namespace kvscope::trace
