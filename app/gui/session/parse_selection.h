#pragma once

#include <optional>
#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Parses the argument of `--select`: "token=964,layer=21,run=snapkv @ 256". The key `run` must come last. Throws
/// std::invalid_argument if a key or number is invalid or no trace has the place.
[[nodiscard]] Cursor parse_selection(const Session& session, const std::string& text);

/// Converts a typed place such as "t700-720" or "l17 h2" to the syntax of parse_selection(), or returns nullopt.
[[nodiscard]] std::optional<std::string> convert_typed_place(const std::string& typed);

}  // namespace kvscope::gui
