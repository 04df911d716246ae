#include "engine/checkpoint/hf_config.h"

#include "engine/checkpoint/classifier_config.h"
#include "tests/fuzz/reader.h"

namespace kvscope::fuzz {

Reader hf_config_reader() {
    return {"hf_config", [](std::string_view bytes) {
                scratch_file("config.json", bytes);
                may_refuse([&] { checkpoint::read_hf_config(scratch()).inverse_frequencies(); });
                may_refuse([&] { checkpoint::read_classifier_config(scratch()); });
            }};
}

}  // namespace kvscope::fuzz
