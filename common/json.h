#pragma once

// nlohmann/json defines literals that parse JSON (`_json`). g++ instantiates the parser for these functions in every
// file that includes the library, which takes 0.6 s. kvscope does not use these literals, so the macros turn their
// definitions into declarations without bodies.
#define _json(text, size)   \
    _json(text, size);      \
    template <class Unused> \
    nlohmann::json unused_json_literal(text, size)
#define _json_pointer(text, size) \
    _json_pointer(text, size);    \
    template <class Unused>       \
    nlohmann::json::json_pointer unused_json_pointer_literal(text, size)
#include <nlohmann/json.hpp>
#undef _json
#undef _json_pointer
