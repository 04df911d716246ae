#include "engine/checkpoint/chat_template_source.h"
#include "engine/checkpoint/hf_config.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/fuzz/reader.h"
#include "tests/fuzz/small_model.h"

namespace kvscope::fuzz {

Reader tokenizer_config_reader() {
    return {"tokenizer_config", [](std::string_view bytes) {
                scratch_file("config.json", small_config);
                scratch_file("tokenizer.json", small_tokenizer);
                scratch_file("tokenizer_config.json", bytes);
                may_refuse([&] { checkpoint::read_hf_config(scratch()); });
                may_refuse([&] { checkpoint::open_tokenizer(scratch()); });
                may_refuse([&] { checkpoint::find_chat_template(scratch()); });
            }};
}

}  // namespace kvscope::fuzz
