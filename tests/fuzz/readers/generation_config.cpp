#include "engine/checkpoint/hf_config.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/fuzz/reader.h"
#include "tests/fuzz/small_model.h"

namespace kvscope::fuzz {

Reader generation_config_reader() {
    return {"generation_config", [](std::string_view bytes) {
                scratch_file("config.json", small_config);
                scratch_file("tokenizer.json", small_tokenizer);
                scratch_file("generation_config.json", bytes);
                may_refuse([&] { checkpoint::read_hf_config(scratch()); });
                may_refuse([&] { checkpoint::open_tokenizer(scratch()); });
            }};
}

}  // namespace kvscope::fuzz
