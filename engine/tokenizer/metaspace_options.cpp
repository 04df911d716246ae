#include "engine/tokenizer/metaspace_options.h"

#include <fmt/format.h>

#include "common/utf8.h"

namespace kvscope::checkpoint {

MetaspaceOptions read_metaspace(const JsonNode& node) {
    using Prepend = MetaspaceOptions::Prepend;
    MetaspaceOptions options;
    options.replacement = node.text_or("replacement", "▁");
    const Utf8Character character = decode_utf8_character(options.replacement, 0);
    if (!character.is_valid || character.bytes != options.replacement.size())
        node.at("replacement").fail("expected a single character");
    options.character = character.code;
    // Older files have add_prefix_space instead of prepend_scheme.
    const std::string scheme =
        node.text_or("prepend_scheme", node.boolean_or("add_prefix_space", true) ? "always" : "never");
    if (scheme == "always") {
        options.prepend = Prepend::always;
    } else if (scheme == "first") {
        options.prepend = Prepend::first;
    } else if (scheme == "never") {
        options.prepend = Prepend::never;
    } else {
        node.at("prepend_scheme").fail(fmt::format("\"{}\" is not always, first or never", scheme));
    }
    options.split = node.boolean_or("split", true);
    return options;
}

}  // namespace kvscope::checkpoint
