#include "policies/methods/echo_maps.h"

#include "tests/fuzz/reader.h"

namespace kvscope::fuzz {

Reader echo_maps_reader() {
    return {"echo_maps", [](std::string_view bytes) {
                const auto path = scratch_file("maps.safetensors", bytes);
                may_refuse([&] { policies::read_echo_header(path); });
                may_refuse([&] { policies::to_safetensors(policies::read_echo_maps(path)); });
            }};
}

}  // namespace kvscope::fuzz
