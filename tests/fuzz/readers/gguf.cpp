#include "engine/checkpoint/chat_template_source.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/fuzz/reader.h"

namespace kvscope::fuzz {

Reader gguf_reader() {
    return {"gguf", [](std::string_view bytes) {
                const auto path = scratch_file("model.gguf", bytes);
                may_refuse([&] {
                    const auto model = checkpoint::open_checkpoint(path);
                    for (const auto& tensor : model->tensors()) {
                        size_t n = 1;
                        for (const int64_t extent : tensor.shape) n *= static_cast<size_t>(extent);
                        std::vector<float> values(n);
                        model->read_f32(tensor.name, values);
                    }
                });
                may_refuse([&] {
                    const auto tokenizer = checkpoint::open_tokenizer(path);
                    const auto ids = tokenizer->encode("Hello, wörld!\n 12 <s>", true, true);
                    tokenizer->decode(ids);
                    for (const int32_t id : ids) tokenizer->shown(id);
                });
                may_refuse([&] { checkpoint::find_chat_template(path); });
            }};
}

}  // namespace kvscope::fuzz
