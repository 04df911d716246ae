#pragma once

#include <optional>
#include <string>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// What `--select` takes: "token=964,layer=21,run=snapkv @ 256". Keys are token (one, or first-last), layer, head (a KV
/// head of the layer), step (of decoding) and, at the end, run: a label as in the list of runs. What is not named stays
/// as it is.
/// @throws std::invalid_argument for a key or a number that cannot be read and for what the traces do not have
Cursor parse_selection(const Session& session, const std::string& text);

/// A place as a person types it, as parse_selection takes it: "t700", "t700-720", "l17 h2", "layer 17", "s3".
/// nullopt where it is no such place.
std::optional<std::string> typed_place(const std::string& typed);

}  // namespace kvscope::gui
