#include "engine/tokenizer/classifier/classifier_tokenizer.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/fuzz/reader.h"

namespace kvscope::fuzz {
namespace {

constexpr std::string_view text = "Hello, wörld!  It's 12 o'clock\n\t一二 <s></s> aaaaaaaa";

}  // namespace

Reader tokenizer_json_reader() {
    return {"tokenizer_json", [](std::string_view bytes) {
                scratch_file("tokenizer.json", bytes);
                may_refuse([&] {
                    const auto tokenizer = checkpoint::open_tokenizer(scratch());
                    const auto ids = tokenizer->encode(text, true, true);
                    tokenizer->decode(ids);
                    for (const int32_t id : ids) tokenizer->shown(id);
                });
                may_refuse([&] {
                    const checkpoint::ClassifierTokenizer tokenizer(scratch());
                    for (const auto& token : tokenizer.encode(text)) tokenizer.continues_word(token.id);
                });
            }};
}

}  // namespace kvscope::fuzz
